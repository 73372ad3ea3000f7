// Checks a core against the built-in hart of hartrace, through an RVVI-TRACE interface
// (rvviTrace, version 1), while the simulation runs. At the first difference it prints the
// report and ends the simulation with $fatal.
//
//   rvviTrace #(.XLEN(64)) rvvi ();
//   hartrace_rvvi #(.XLEN(64), .ELF("program.elf")) compare (.rvvi(rvvi));
//
// Each hart has its own checker. RVVI reports registers and CSRs as flags and values, and
// no loads and stores: those are seen by what is loaded later. +hartrace_config=FILE and
// +hartrace_elf=FILE replace the parameters.

module hartrace_rvvi #(
    parameter int ILEN   = 32,
    parameter int XLEN   = 32,
    parameter int FLEN   = 32,
    parameter int NHART  = 1,
    parameter int RETIRE = 1,
    parameter     CONFIG = "",
    parameter     ELF    = "",
    // What the core drives of the optional signals: HARTRACE_HAS_* of hartrace.h. By
    // default order, pc_wdata, mode and every CSR; not intr, so that a jump that no
    // instruction makes is an interrupt.
    parameter int REPORTS = 'h42b
) (
    rvviTrace rvvi
);
    import "DPI-C" function chandle hartrace_dpi_new(
        input string config_file, input string config_text, input string elf,
        input int hart, input int reports);
    import "DPI-C" function int hartrace_dpi_status(input chandle check);
    import "DPI-C" function void hartrace_dpi_write(
        input chandle check, input int kind, input int number, input longint value);
    import "DPI-C" function int hartrace_dpi_retire(
        input chandle check, input int valid, input longint order, input int insn,
        input int flags, input int mode, input longint pc_rdata, input longint pc_wdata,
        input int rd_addr, input longint rd_wdata, input longint mem_addr,
        input int mem_masks, input longint mem_rdata, input longint mem_wdata);
    import "DPI-C" function int hartrace_dpi_finish(input chandle check);
    import "DPI-C" function longint hartrace_dpi_retired(input chandle check);
    import "DPI-C" function string hartrace_dpi_text(input chandle check);

    localparam int HAS_RD = 'h20, HAS_FLOATS = 'h200, HAS_CSRS = 'h400;
    localparam int KIND_X = 0, KIND_F = 1, KIND_CSR = 2;

    chandle check [NHART];
    string config_file, elf;
    bit stopped = 0;

    initial begin
        config_file = CONFIG;
        elf = ELF;
        void'($value$plusargs("hartrace_config=%s", config_file));
        void'($value$plusargs("hartrace_elf=%s", elf));
        for (int hart = 0; hart < NHART; hart++) begin
            check[hart] = hartrace_dpi_new(config_file, "", elf, hart, REPORTS);
            if (hartrace_dpi_status(check[hart]) != 0) begin
                $display("%s", hartrace_dpi_text(check[hart]));
                $fatal(1, "hartrace: hart %0d cannot be checked", hart);
            end
        end
    end

    function automatic void retire(int hart, int lane);
        int status;
        for (int number = 1; number < 32; number++)
            if (rvvi.x_wb[hart][lane][number])
                hartrace_dpi_write(check[hart], KIND_X, number,
                                   longint'(rvvi.x_wdata[hart][lane][number]));
        if (rvvi.f_wb[hart][lane] != 0)
            for (int number = 0; number < 32; number++)
                if (rvvi.f_wb[hart][lane][number])
                    hartrace_dpi_write(check[hart], KIND_F, number,
                                       longint'(rvvi.f_wdata[hart][lane][number]));
        if (rvvi.csr_wb[hart][lane] != 0)
            for (int number = 0; number < 4096; number++)
                if (rvvi.csr_wb[hart][lane][number])
                    hartrace_dpi_write(check[hart], KIND_CSR, number,
                                       longint'(rvvi.csr[hart][lane][number]));
        // Registers are among the writes.
        status = hartrace_dpi_retire(
            check[hart], REPORTS & ~(HAS_RD | HAS_FLOATS | HAS_CSRS),
            longint'(rvvi.order[hart][lane]), int'(rvvi.insn[hart][lane]),
            int'({rvvi.intr[hart][lane], rvvi.halt[hart][lane], rvvi.trap[hart][lane]}),
            int'(rvvi.mode[hart][lane]), longint'(rvvi.pc_rdata[hart][lane]),
            longint'(rvvi.pc_wdata[hart][lane]), 0, 0, 0, 0, 0, 0);
        if (status != 0) begin
            stopped = 1;
            $display("%s", hartrace_dpi_text(check[hart]));
            $fatal(1, "hartrace: hart %0d, lane %0d, order %0d, time %0t", hart, lane,
                   rvvi.order[hart][lane], $time);
        end
    endfunction

    always @(posedge rvvi.clk)
        for (int hart = 0; hart < NHART; hart++)
            for (int lane = 0; lane < RETIRE; lane++)
                if (rvvi.valid[hart][lane] && !stopped) retire(hart, lane);

    final if (!stopped)
        for (int hart = 0; hart < NHART; hart++)
            if (hartrace_dpi_finish(check[hart]) != 0)
                $display("%s", hartrace_dpi_text(check[hart]));
            else
                $display("hartrace: hart %0d: %0d instructions agree", hart,
                         hartrace_dpi_retired(check[hart]));
endmodule
