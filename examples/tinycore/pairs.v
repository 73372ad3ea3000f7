// An RVFI port that shows up to two instructions in a cycle, as that of a core with two lanes:
// what tinycore retires, collected. Both lanes are in use most of the time, sometimes one of
// them alone. With the macro HARTRACE the port is checked while it runs.
`timescale 1ns / 1ps

module pairs (
    input         clk,
    input         reset,
    input         valid,
    input  [63:0] order,
    input  [31:0] insn,
    input         trap,
    input         halt,
    input         intr,
    input   [1:0] mode,
    input   [1:0] ixl,
    input   [4:0] rd_addr,
    input  [31:0] rd_wdata,
    input  [31:0] pc_rdata,
    input  [31:0] pc_wdata,
    input  [31:0] mem_addr,
    input   [3:0] mem_rmask,
    input   [3:0] mem_wmask,
    input  [31:0] mem_rdata,
    input  [31:0] mem_wdata
);
    // ---- The port, the first instruction in the lowest bits -------------------------

    reg    [1:0] rvfi_valid;
    wire [127:0] rvfi_order;
    wire  [63:0] rvfi_insn, rvfi_rd_wdata, rvfi_pc_rdata, rvfi_pc_wdata;
    wire  [63:0] rvfi_mem_addr, rvfi_mem_rdata, rvfi_mem_wdata;
    wire   [1:0] rvfi_trap, rvfi_halt, rvfi_intr;
    wire   [3:0] rvfi_mode, rvfi_ixl;
    wire   [9:0] rvfi_rd_addr;
    wire   [7:0] rvfi_mem_rmask, rvfi_mem_wmask;

    localparam WIDTH = 64 + 7 * 32 + 3 + 2 * 2 + 5 + 2 * 4;
    reg [WIDTH-1:0] shown [0:1];
    genvar lane;
    generate
        for (lane = 0; lane < 2; lane = lane + 1) begin : lanes
            assign {rvfi_order[64*lane +: 64], rvfi_insn[32*lane +: 32], rvfi_trap[lane],
                    rvfi_halt[lane], rvfi_intr[lane], rvfi_mode[2*lane +: 2],
                    rvfi_ixl[2*lane +: 2], rvfi_rd_addr[5*lane +: 5],
                    rvfi_rd_wdata[32*lane +: 32], rvfi_pc_rdata[32*lane +: 32],
                    rvfi_pc_wdata[32*lane +: 32], rvfi_mem_addr[32*lane +: 32],
                    rvfi_mem_rmask[4*lane +: 4], rvfi_mem_wmask[4*lane +: 4],
                    rvfi_mem_rdata[32*lane +: 32], rvfi_mem_wdata[32*lane +: 32]} = shown[lane];
        end
    endgenerate

    // ---- Collecting -----------------------------------------------------------------

    wire [WIDTH-1:0] retired = {order, insn, trap, halt, intr, mode, ixl, rd_addr, rd_wdata,
                                pc_rdata, pc_wdata, mem_addr, mem_rmask, mem_wmask, mem_rdata,
                                mem_wdata};
    reg [WIDTH-1:0] kept;
    reg             waits;
    always @(posedge clk) begin
        rvfi_valid <= 0;
        if (reset) waits <= 0;
        else if (waits && valid) begin
            {shown[1], shown[0]} <= {retired, kept};
            rvfi_valid <= 2'b11;
            waits <= 0;
        end else if (waits) begin
            shown[0] <= kept;
            rvfi_valid <= 2'b01;
            waits <= 0;
        end else if (valid && order[3:0] == 7) begin
            shown[1] <= retired;
            rvfi_valid <= 2'b10;
        end else if (valid) begin
            kept <= retired;
            waits <= 1;
        end
    end

`ifdef HARTRACE
    hartrace_rvfi #(.XLEN(32), .NRET(2)) compare (
        .clk(clk), .reset(reset),
        .rvfi_valid(rvfi_valid), .rvfi_order(rvfi_order), .rvfi_insn(rvfi_insn),
        .rvfi_trap(rvfi_trap), .rvfi_halt(rvfi_halt), .rvfi_intr(rvfi_intr),
        .rvfi_mode(rvfi_mode),
        .rvfi_rd_addr(rvfi_rd_addr), .rvfi_rd_wdata(rvfi_rd_wdata),
        .rvfi_pc_rdata(rvfi_pc_rdata), .rvfi_pc_wdata(rvfi_pc_wdata),
        .rvfi_mem_addr(rvfi_mem_addr), .rvfi_mem_rmask(rvfi_mem_rmask),
        .rvfi_mem_wmask(rvfi_mem_wmask), .rvfi_mem_rdata(rvfi_mem_rdata),
        .rvfi_mem_wdata(rvfi_mem_wdata)
    );
`endif
endmodule
