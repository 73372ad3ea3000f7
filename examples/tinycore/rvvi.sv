// tinycore behind an RVVI-TRACE interface, checked by sv/hartrace_rvvi.sv: what the core shows
// by RVFI, and the CSRs that instructions and exceptions write. The interface has the signals
// of rvviTrace (version 1) that a core drives.
`timescale 1ns / 1ps

interface rvviTrace #(
    parameter int ILEN   = 32,
    parameter int XLEN   = 32,
    parameter int FLEN   = 32,
    parameter int NHART  = 1,
    parameter int RETIRE = 1
);
    wire                    clk;
    wire                    valid    [NHART-1:0][RETIRE-1:0];
    wire             [63:0] order    [NHART-1:0][RETIRE-1:0];
    wire         [ILEN-1:0] insn     [NHART-1:0][RETIRE-1:0];
    wire                    trap     [NHART-1:0][RETIRE-1:0];
    wire                    halt     [NHART-1:0][RETIRE-1:0];
    wire                    intr     [NHART-1:0][RETIRE-1:0];
    wire              [1:0] mode     [NHART-1:0][RETIRE-1:0];
    wire         [XLEN-1:0] pc_rdata [NHART-1:0][RETIRE-1:0];
    wire         [XLEN-1:0] pc_wdata [NHART-1:0][RETIRE-1:0];
    wire   [31:0][XLEN-1:0] x_wdata  [NHART-1:0][RETIRE-1:0];
    wire             [31:0] x_wb     [NHART-1:0][RETIRE-1:0];
    wire   [31:0][FLEN-1:0] f_wdata  [NHART-1:0][RETIRE-1:0];
    wire             [31:0] f_wb     [NHART-1:0][RETIRE-1:0];
    wire [4095:0][XLEN-1:0] csr      [NHART-1:0][RETIRE-1:0];
    wire           [4095:0] csr_wb   [NHART-1:0][RETIRE-1:0];
endinterface

module rvvi_port (
    input        clk,
    input        reset,
    input        valid,
    input [63:0] order,
    input [31:0] insn,
    input        trap,
    input        halt,
    input        intr,
    input  [1:0] mode,
    input  [4:0] rd_addr,
    input [31:0] rd_wdata,
    input [31:0] pc_rdata,
    input [31:0] pc_wdata,
    // As they are after the instruction.
    input [31:0] mscratch,
    input [31:0] mepc,
    input [31:0] mcause,
    input [31:0] mtval
);
    rvviTrace rvvi ();
    // Neither intr nor all CSRs: mstatus is not there, and what an interrupt writes.
    hartrace_rvvi #(.REPORTS('h2b)) compare (.rvvi(rvvi));

    assign rvvi.clk            = clk;
    assign rvvi.valid[0][0]    = valid && !reset;
    assign rvvi.order[0][0]    = order;
    assign rvvi.insn[0][0]     = insn;
    assign rvvi.trap[0][0]     = trap;
    assign rvvi.halt[0][0]     = halt;
    assign rvvi.intr[0][0]     = intr;
    assign rvvi.mode[0][0]     = mode;
    assign rvvi.pc_rdata[0][0] = pc_rdata;
    assign rvvi.pc_wdata[0][0] = pc_wdata;
    assign rvvi.x_wdata[0][0]  = {32{rd_wdata}};
    assign rvvi.x_wb[0][0]     = rd_addr == 0 ? 0 : 32'b1 << rd_addr;
    assign rvvi.f_wdata[0][0]  = 0;
    assign rvvi.f_wb[0][0]     = 0;

    wire        writes_csr = !trap && insn[6:0] == 7'h73 && insn[13:12] != 0
                             && (insn[13:12] == 1 || insn[19:15] != 0);
    wire [11:0] number     = insn[31:20];
    reg  [4095:0]       written;
    reg  [4095:0][31:0] csrs;
    always_comb begin
        written = 0;
        csrs = 0;
        csrs[12'h340] = mscratch;
        csrs[12'h341] = mepc;
        csrs[12'h342] = mcause;
        csrs[12'h343] = mtval;
        for (int csr = 'h340; csr <= 'h343; csr++)
            written[csr] = writes_csr && int'(number) == csr || trap && csr != 'h340;
    end
    assign rvvi.csr[0][0]    = csrs;
    assign rvvi.csr_wb[0][0] = written;
endmodule
