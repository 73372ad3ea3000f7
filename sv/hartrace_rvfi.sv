// Checks a core against the built-in hart of hartrace, through its RISC-V Formal Interface,
// while the simulation runs. At the first difference it prints the report and ends the
// simulation with $fatal.
//
//   hartrace_rvfi #(.XLEN(32), .ELF("program.elf")) compare (.clk, .reset, .rvfi_valid, ...);
//
// or bound to the module that has the port:
//
//   bind core hartrace_rvfi #(.XLEN(32)) compare (.clk(clk), .reset(!resetn), ...);
//
// +hartrace_config=FILE and +hartrace_elf=FILE replace the parameters. With Verilator and
// commercial simulators it calls the library by DPI-C (hartrace_dpi.c), with Icarus Verilog
// by VPI (hartrace_vpi.c).

module hartrace_rvfi #(
    parameter XLEN   = 32,
    parameter ILEN   = 32,
    parameter NRET   = 1,    // instructions in a cycle, the first one in the lowest bits
    parameter HART   = 0,
    parameter CONFIG = "",   // a configuration of hartrace, in TOML
    parameter ELF    = ""    // the program
) (
    input                   clk,
    input                   reset,
    input        [NRET-1:0] rvfi_valid,
    input     [NRET*64-1:0] rvfi_order,
    input   [NRET*ILEN-1:0] rvfi_insn,
    input        [NRET-1:0] rvfi_trap,
    input        [NRET-1:0] rvfi_halt,
    input        [NRET-1:0] rvfi_intr,
    input      [NRET*2-1:0] rvfi_mode,
    input      [NRET*5-1:0] rvfi_rd_addr,
    input   [NRET*XLEN-1:0] rvfi_rd_wdata,
    input   [NRET*XLEN-1:0] rvfi_pc_rdata,
    input   [NRET*XLEN-1:0] rvfi_pc_wdata,
    input   [NRET*XLEN-1:0] rvfi_mem_addr,
    input [NRET*XLEN/8-1:0] rvfi_mem_rmask,
    input [NRET*XLEN/8-1:0] rvfi_mem_wmask,
    input   [NRET*XLEN-1:0] rvfi_mem_rdata,
    input   [NRET*XLEN-1:0] rvfi_mem_wdata
);
    // HARTRACE_RVFI of hartrace.h. An order that does not count is left out: bit 0.
    parameter REPORTS = 'h7f;

`ifdef __ICARUS__
    integer check;
    reg [8*1024-1:0] config_file, elf;
    initial begin
        config_file = CONFIG;
        elf = ELF;
        if ($value$plusargs("hartrace_config=%s", config_file)) ;
        if ($value$plusargs("hartrace_elf=%s", elf)) ;
        check = $hartrace_new(config_file, elf, HART, REPORTS);
        if (check < 0) $fatal(1, "hartrace: the core cannot be checked");
    end
`define HARTRACE_RETIRE $hartrace_retire
`define HARTRACE_REPORT $hartrace_report(check)
`define HARTRACE_FINISH $hartrace_finish(check)
`define HARTRACE_COUNT  $hartrace_retired(check)
`else
    import "DPI-C" function chandle hartrace_dpi_new(
        input string config_file, input string config_text, input string elf,
        input int hart, input int reports);
    import "DPI-C" function int hartrace_dpi_status(input chandle check);
    import "DPI-C" function int hartrace_dpi_retire(
        input chandle check, input int valid, input longint order, input int insn,
        input int flags, input int mode, input longint pc_rdata, input longint pc_wdata,
        input int rd_addr, input longint rd_wdata, input longint mem_addr,
        input int mem_masks, input longint mem_rdata, input longint mem_wdata);
    import "DPI-C" function int hartrace_dpi_finish(input chandle check);
    import "DPI-C" function longint hartrace_dpi_retired(input chandle check);
    import "DPI-C" function string hartrace_dpi_text(input chandle check);
    import "DPI-C" function void hartrace_dpi_free(input chandle check);

    chandle check;
    string config_file, elf;
    initial begin
        config_file = CONFIG;
        elf = ELF;
        if ($value$plusargs("hartrace_config=%s", config_file)) ;
        if ($value$plusargs("hartrace_elf=%s", elf)) ;
        check = hartrace_dpi_new(config_file, "", elf, HART, REPORTS);
        if (hartrace_dpi_status(check) != 0) begin
            $display("%s", hartrace_dpi_text(check));
            $fatal(1, "hartrace: the core cannot be checked");
        end
    end
`define HARTRACE_RETIRE hartrace_dpi_retire
`define HARTRACE_REPORT $display("%s", hartrace_dpi_text(check))
`define HARTRACE_FINISH hartrace_dpi_finish(check)
`define HARTRACE_COUNT  hartrace_dpi_retired(check)
`endif

    integer lane, at, status, masks;
    reg [63:0] order, pc_rdata, pc_wdata, rd_wdata, mem_addr, mem_rdata, mem_wdata;
    reg stopped = 0;

    always @(posedge clk) if (!reset && !stopped) begin
        for (lane = 0; lane < NRET; lane = lane + 1) if (rvfi_valid[lane] && !stopped) begin
            order     = rvfi_order[lane*64 +: 64];
            pc_rdata  = {{64-XLEN{1'b0}}, rvfi_pc_rdata[lane*XLEN +: XLEN]};
            pc_wdata  = {{64-XLEN{1'b0}}, rvfi_pc_wdata[lane*XLEN +: XLEN]};
            masks     = 0;
            masks[XLEN/8-1:0] = rvfi_mem_rmask[lane*XLEN/8 +: XLEN/8];
            masks[XLEN/8+7:8] = rvfi_mem_wmask[lane*XLEN/8 +: XLEN/8];
            // Only what is written and accessed has to have a value.
            {rd_wdata, mem_addr, mem_rdata, mem_wdata} = 0;
            if (rvfi_rd_addr[lane*5 +: 5] != 0)
                rd_wdata[XLEN-1:0] = rvfi_rd_wdata[lane*XLEN +: XLEN];
            if (masks != 0) mem_addr[XLEN-1:0] = rvfi_mem_addr[lane*XLEN +: XLEN];
            for (at = 0; at < XLEN/8; at = at + 1) begin
                if (masks[at]) mem_rdata[8*at +: 8] = rvfi_mem_rdata[lane*XLEN + 8*at +: 8];
                if (masks[8+at]) mem_wdata[8*at +: 8] = rvfi_mem_wdata[lane*XLEN + 8*at +: 8];
            end
            status = `HARTRACE_RETIRE(check, REPORTS, order, rvfi_insn[lane*ILEN +: 32],
                {29'b0, rvfi_intr[lane], rvfi_halt[lane], rvfi_trap[lane]},
                {30'b0, rvfi_mode[lane*2 +: 2]}, pc_rdata, pc_wdata,
                {27'b0, rvfi_rd_addr[lane*5 +: 5]}, rd_wdata, mem_addr, masks, mem_rdata,
                mem_wdata);
            if (status != 0) begin
                stopped = 1;
                `HARTRACE_REPORT;
                $fatal(1, "hartrace: lane %0d, order %0d, time %0t", lane, order, $time);
            end
        end
    end

    final if (!stopped) begin
        if (`HARTRACE_FINISH != 0) `HARTRACE_REPORT;
        else if (`HARTRACE_COUNT == 0)
            $display("hartrace: nothing was checked: rvfi_valid was never set");
        else $display("hartrace: %0d instructions agree", `HARTRACE_COUNT);
    end
endmodule
