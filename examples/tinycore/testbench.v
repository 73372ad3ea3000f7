// tinycore with memory, a timer and a console, and what looks at it:
//
//   +program=FILE     the program, in the form of $readmemh, from 0x80000000 on
//   +log=FILE         a log in the form of Spike's, for `hartrace verify`
//   +rows=FILE        the trace ingress port as CSV, for `hartrace encode`
//   +waves=FILE       a waveform, VCD
//   HARTRACE          a macro: checks the core while it runs (sv/hartrace_rvfi.sv)
//   PAIRS             a macro: a port with two lanes besides (pairs.v), which is then checked
//   RVVI              a macro: checks it by an RVVI-TRACE interface instead (rvvi.sv)
`timescale 1ns / 1ps

module testbench;
    reg clk = 0, reset = 1;
    always #5 clk = !clk;

    // ---- The core -------------------------------------------------------------------

    wire [31:0] insn_addr, data_addr, data_wdata;
    wire  [3:0] data_write;
    wire        data_read;
    reg  [31:0] data_rdata;
    wire        rvfi_valid, rvfi_trap, rvfi_halt, rvfi_intr;
    wire [63:0] rvfi_order;
    wire [31:0] rvfi_insn, rvfi_rd_wdata, rvfi_pc_rdata, rvfi_pc_wdata;
    wire [31:0] rvfi_mem_addr, rvfi_mem_rdata, rvfi_mem_wdata;
    wire  [4:0] rvfi_rd_addr;
    wire  [3:0] rvfi_mem_rmask, rvfi_mem_wmask;
    wire  [1:0] rvfi_mode, rvfi_ixl;
    wire        trace_valid, trace_iretire;
    wire  [3:0] trace_itype;
    wire  [4:0] trace_cause;
    wire [31:0] trace_tval, trace_iaddr;
    reg         timer_interrupt = 0;

    tinycore core (
        .clk(clk), .reset(reset),
        .insn_addr(insn_addr), .insn_data(ram[insn_addr[15:2]]),
        .data_addr(data_addr), .data_read(data_read), .data_write(data_write),
        .data_wdata(data_wdata), .data_rdata(data_rdata),
        .timer_interrupt(timer_interrupt),
        .rvfi_valid(rvfi_valid), .rvfi_order(rvfi_order), .rvfi_insn(rvfi_insn),
        .rvfi_trap(rvfi_trap), .rvfi_halt(rvfi_halt), .rvfi_intr(rvfi_intr),
        .rvfi_mode(rvfi_mode), .rvfi_ixl(rvfi_ixl),
        .rvfi_rd_addr(rvfi_rd_addr), .rvfi_rd_wdata(rvfi_rd_wdata),
        .rvfi_pc_rdata(rvfi_pc_rdata), .rvfi_pc_wdata(rvfi_pc_wdata),
        .rvfi_mem_addr(rvfi_mem_addr), .rvfi_mem_rmask(rvfi_mem_rmask),
        .rvfi_mem_wmask(rvfi_mem_wmask), .rvfi_mem_rdata(rvfi_mem_rdata),
        .rvfi_mem_wdata(rvfi_mem_wdata),
        .trace_valid(trace_valid), .trace_itype(trace_itype), .trace_cause(trace_cause),
        .trace_tval(trace_tval), .trace_iaddr(trace_iaddr), .trace_iretire(trace_iretire)
    );

`ifdef PAIRS
    pairs pairs (
        .clk(clk), .reset(reset), .valid(rvfi_valid), .order(rvfi_order), .insn(rvfi_insn),
        .trap(rvfi_trap), .halt(rvfi_halt), .intr(rvfi_intr), .mode(rvfi_mode), .ixl(rvfi_ixl),
        .rd_addr(rvfi_rd_addr), .rd_wdata(rvfi_rd_wdata),
        .pc_rdata(rvfi_pc_rdata), .pc_wdata(rvfi_pc_wdata), .mem_addr(rvfi_mem_addr),
        .mem_rmask(rvfi_mem_rmask), .mem_wmask(rvfi_mem_wmask),
        .mem_rdata(rvfi_mem_rdata), .mem_wdata(rvfi_mem_wdata)
    );
`elsif RVVI
    rvvi_port port (
        .clk(clk), .reset(reset), .valid(rvfi_valid), .order(rvfi_order), .insn(rvfi_insn),
        .trap(rvfi_trap), .halt(rvfi_halt), .intr(rvfi_intr), .mode(rvfi_mode),
        .rd_addr(rvfi_rd_addr), .rd_wdata(rvfi_rd_wdata),
        .pc_rdata(rvfi_pc_rdata), .pc_wdata(rvfi_pc_wdata), .mscratch(core.mscratch),
        .mepc(core.mepc), .mcause(core.mcause), .mtval(core.mtval)
    );
`elsif HARTRACE
    hartrace_rvfi #(.XLEN(32)) compare (
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

    // ---- Memory and devices ---------------------------------------------------------

    reg [31:0] ram [0:16383];                  // 64 KiB at 0x80000000
    reg [63:0] mtime = 0, mtimecmp = ~64'b0;   // as in a CLINT
    localparam [31:0] MTIMECMP = 32'h0200_4000, MTIME = 32'h0200_bff8,
                      CONSOLE = 32'h1000_0000, POWER = 32'h0010_0000;

    wire        in_ram   = data_addr[31:16] == 16'h8000;
    wire [31:0] ram_word = ram[data_addr[15:2]];
    always @* begin
        case (data_addr)
            MTIME:        data_rdata = mtime[31:0];
            MTIME + 4:    data_rdata = mtime[63:32];
            MTIMECMP:     data_rdata = mtimecmp[31:0];
            MTIMECMP + 4: data_rdata = mtimecmp[63:32];
            default:      data_rdata = in_ram ? ram_word : 0;
        endcase
    end

    integer lane;
    reg [31:0] word;
    always @(posedge clk) begin
        mtime <= mtime + 1;
        timer_interrupt <= mtime >= mtimecmp;
        if (in_ram && data_write != 0) begin
            word = ram_word;
            for (lane = 0; lane < 4; lane = lane + 1)
                if (data_write[lane]) word[8*lane +: 8] = data_wdata[8*lane +: 8];
            ram[data_addr[15:2]] <= word;
        end
        if (data_write != 0) case (data_addr)
            MTIMECMP:     mtimecmp[31:0] <= data_wdata;
            MTIMECMP + 4: mtimecmp[63:32] <= data_wdata;
            CONSOLE:      $write("%c", data_wdata[7:0]);
            POWER:        ending <= 1;
            default: ;
        endcase
    end

    // ---- What looks at it -----------------------------------------------------------

    reg [8*256-1:0] file;
    integer log = 0, rows = 0, cycles = 0;
    reg ending = 0, ended = 0;
    initial begin
        if (!$value$plusargs("program=%s", file)) begin
            $display("no +program=FILE");
            $finish;
        end
        $readmemh(file, ram);
        if ($value$plusargs("log=%s", file)) log = $fopen(file, "w");
        if ($value$plusargs("rows=%s", file)) begin
            rows = $fopen(file, "w");
            $fwrite(rows, "itype_0,cause,tval,priv,iaddr_0,context,time,ctype,sijump_0,");
            $fwrite(rows, "iretire_0,ilastsize_0\n");
        end
        if ($value$plusargs("waves=%s", file)) begin
            $dumpfile(file);
            $dumpvars(0, testbench);
        end
        repeat (4) @(posedge clk);
        @(negedge clk) reset = 0;
    end

    // What the core shows of an instruction is there in the cycle after it.
    reg [31:0] last_next = 0;
    always @(negedge clk) begin
        cycles = cycles + 1;
        if (rvfi_valid && log != 0) begin
            if (rvfi_intr && !was_trap)
                $fwrite(log, "core   0: exception interrupt #7, epc 0x%08x\n", last_next);
            if (rvfi_trap)
                print_exception;
            else begin
                $fwrite(log, "core   0: 3 0x%08x (0x%08x)", rvfi_pc_rdata, rvfi_insn);
                if (rvfi_rd_addr != 0)
                    $fwrite(log, " x%0d 0x%08x", rvfi_rd_addr, rvfi_rd_wdata);
                if (rvfi_mem_rmask != 0)
                    $fwrite(log, " mem 0x%08x", rvfi_mem_addr + offset(rvfi_mem_rmask));
                if (rvfi_mem_wmask != 0) print_store;
                $fwrite(log, "\n");
            end
        end
        if (rvfi_valid) begin
            last_next = rvfi_pc_wdata;
            was_trap = rvfi_trap;
        end
        if (trace_valid && rows != 0)
            $fwrite(rows, "%0d,%0d,%0x,3,%08x,0,%0d,0,0,%0d,1\n", trace_itype, trace_cause,
                    trace_tval, trace_iaddr, cycles, trace_iretire);
        if (ended || cycles > 2000000) begin
            if (log != 0) $fclose(log);
            if (rows != 0) $fclose(rows);
            if (!ended) $display("the program does not end");
            $finish;
        end
        ended = ending;
    end

    reg was_trap = 0;

    function [31:0] offset(input [3:0] mask);
        offset = mask[0] ? 0 : mask[1] ? 1 : mask[2] ? 2 : 3;
    endfunction

    reg [31:0] stored;
    task print_store;
        begin
            stored = rvfi_mem_wdata >> {offset(rvfi_mem_wmask), 3'b0};
            $fwrite(log, " mem 0x%08x ", rvfi_mem_addr + offset(rvfi_mem_wmask));
            case (rvfi_insn[13:12])
                0: $fwrite(log, "0x%02x", stored[7:0]);
                1: $fwrite(log, "0x%04x", stored[15:0]);
                default: $fwrite(log, "0x%08x", stored);
            endcase
        end
    endtask

    task print_exception;
        begin
            $fwrite(log, "core   0: 0x%08x (0x%08x) -\n", rvfi_pc_rdata, rvfi_insn);
            case (trace_cause)
                0: $fwrite(log, "core   0: exception trap_instruction_address_misaligned");
                2: $fwrite(log, "core   0: exception trap_illegal_instruction");
                3: $fwrite(log, "core   0: exception trap_breakpoint");
                4: $fwrite(log, "core   0: exception trap_load_address_misaligned");
                6: $fwrite(log, "core   0: exception trap_store_address_misaligned");
                default: $fwrite(log, "core   0: exception trap_machine_ecall");
            endcase
            $fwrite(log, ", epc 0x%08x\n", rvfi_pc_rdata);
            if (trace_cause != 11)
                $fwrite(log, "core   0:           tval 0x%08x\n", trace_tval);
        end
    endtask
endmodule
