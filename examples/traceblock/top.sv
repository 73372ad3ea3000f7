// The tracer with one port for blocks. Its second one stays idle: a tracer with one port only
// lets nothing pass its filter.
module top (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         valid_i,
    input  logic [3:0]   itype_i,
    input  logic [63:0]  cause_i,
    input  logic [63:0]  tval_i,
    input  logic [1:0]   priv_i,
    input  logic [63:0]  iaddr_i,
    input  logic [31:0]  iretire_i,
    input  logic         ilastsize_i,
    input  logic [63:0]  tvec_i,
    input  logic [63:0]  epc_i,
    output logic         packet_valid_o,
    output logic [4:0]   packet_length_o,
    output logic [247:0] packet_payload_o
);
    logic [1:0]        valid;
    logic [1:0][4:0]   length;
    logic [1:0][247:0] payload;

    rv_tracer #(.N(2), .ONLY_BRANCHES(1)) tracer (
        .clk_i, .rst_ni,
        .valid_i({1'b0, valid_i}),
        .itype_i({4'b0, itype_i}),
        .cause_i, .tval_i, .priv_i,
        .iaddr_i({64'b0, iaddr_i}),
        .iretire_i({32'b0, iretire_i}),
        .ilastsize_i({1'b0, ilastsize_i}),
        .time_i('0),
        .tvec_i, .epc_i,
        .encapsulator_ready_i(1'b1),
        .paddr_i('0), .pwrite_i(1'b0), .psel_i(1'b0), .penable_i(1'b0), .pwdata_i('0),
        .packet_valid_o(valid),
        .packet_type_o(),
        .packet_length_o(length),
        .packet_payload_o(payload),
        .stall_o(), .pready_o(), .prdata_o()
    );

    assign packet_valid_o   = valid[0];
    assign packet_length_o  = length[0];
    assign packet_payload_o = payload[0];
endmodule
