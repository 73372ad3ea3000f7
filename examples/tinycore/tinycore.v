// tinycore: RV32I with Zicsr, machine mode and the machine timer interrupt. It retires an
// instruction in every cycle; memory answers in the same cycle. It is made to be read, and
// to be checked: every instruction is on the RISC-V Formal Interface (rvfi_*) in the cycle
// after it retired, and on a trace ingress port (trace_*) with it.
//
// Planted faults, each a macro:
//   BUG_ADDER            bit 4 of the first operand of `add` is lost where bit 12 is set
//   BUG_WRITE_ENABLE     `sb` to the last byte of a word stores nothing
//   BUG_LATE_INTERRUPT   an interrupt is taken one instruction after it was decided on

`timescale 1ns / 1ps

module tinycore #(
    parameter [31:0] RESET_PC = 32'h8000_0000
) (
    input             clk,
    input             reset,
    // Instructions and data, read in the same cycle.
    output     [31:0] insn_addr,
    input      [31:0] insn_data,
    output     [31:0] data_addr,      // of a word
    output            data_read,
    output      [3:0] data_write,     // a bit for each byte
    output     [31:0] data_wdata,
    input      [31:0] data_rdata,
    input             timer_interrupt,
    // RISC-V Formal Interface.
    output reg        rvfi_valid,
    output reg [63:0] rvfi_order,
    output reg [31:0] rvfi_insn,
    output reg        rvfi_trap,
    output reg        rvfi_halt,
    output reg        rvfi_intr,
    output reg  [1:0] rvfi_mode,
    output reg  [1:0] rvfi_ixl,
    output reg  [4:0] rvfi_rd_addr,
    output reg [31:0] rvfi_rd_wdata,
    output reg [31:0] rvfi_pc_rdata,
    output reg [31:0] rvfi_pc_wdata,
    output reg [31:0] rvfi_mem_addr,
    output reg  [3:0] rvfi_mem_rmask,
    output reg  [3:0] rvfi_mem_wmask,
    output reg [31:0] rvfi_mem_rdata,
    output reg [31:0] rvfi_mem_wdata,
    // Trace ingress port, E-Trace chapter 4: single retirement, itype of four bits.
    output reg        trace_valid,
    output reg  [3:0] trace_itype,
    output reg  [4:0] trace_cause,
    output reg [31:0] trace_tval,
    output reg [31:0] trace_iaddr,
    output reg        trace_iretire   // instructions: 0 or 1
);
    // ---- State ----------------------------------------------------------------------

    reg [31:0] pc;
    reg [31:0] x [0:31];
    reg        mie_enabled, mpie;              // mstatus.MIE and MPIE; MPP is always M
    reg        mtie;                           // mie.MTIE
    reg [31:0] mtvec, mscratch, mepc, mcause, mtval;
    reg [63:0] mcycle, minstret;
    reg        first_of_handler;

    // The hart that it is compared with starts with zeros.
    integer i;
    initial for (i = 0; i < 32; i = i + 1) x[i] = 0;

    // ---- Decoding -------------------------------------------------------------------

    wire [31:0] insn   = insn_data;
    wire  [6:0] opcode = insn[6:0];
    wire  [2:0] funct3 = insn[14:12];
    wire  [6:0] funct7 = insn[31:25];
    wire  [4:0] rd     = insn[11:7];
    wire  [4:0] rs1    = insn[19:15];
    wire  [4:0] rs2    = insn[24:20];
    wire [31:0] imm_i  = {{20{insn[31]}}, insn[31:20]};
    wire [31:0] imm_s  = {{20{insn[31]}}, insn[31:25], insn[11:7]};
    wire [31:0] imm_b  = {{19{insn[31]}}, insn[31], insn[7], insn[30:25], insn[11:8], 1'b0};
    wire [31:0] imm_u  = {insn[31:12], 12'b0};
    wire [31:0] imm_j  = {{11{insn[31]}}, insn[31], insn[19:12], insn[20], insn[30:21], 1'b0};
    wire [31:0] a      = rs1 == 0 ? 0 : x[rs1];
    wire [31:0] b      = rs2 == 0 ? 0 : x[rs2];

    localparam LUI = 7'h37, AUIPC = 7'h17, JAL = 7'h6f, JALR = 7'h67, BRANCH = 7'h63,
               LOAD = 7'h03, STORE = 7'h23, OP_IMM = 7'h13, OP = 7'h33, FENCE = 7'h0f,
               SYSTEM = 7'h73;

    wire is_csr  = opcode == SYSTEM && funct3[1:0] != 0;
    wire is_mret = insn == 32'h3020_0073;
    wire is_wfi  = insn == 32'h1050_0073;
    wire ecall   = insn == 32'h0000_0073;
    wire ebreak  = insn == 32'h0010_0073;

    // ---- Arithmetic -----------------------------------------------------------------

    wire        register_form = opcode == OP;
    wire [31:0] operand       = register_form ? b : imm_i;
    wire        subtract      = register_form && funct7[5];
`ifdef BUG_ADDER
    wire [31:0] addend        = register_form && a[12] ? a & ~32'h10 : a;
`else
    wire [31:0] addend        = a;
`endif
    reg  [31:0] result;
    always @* begin
        case (funct3)
            3'd0: result = subtract ? addend - operand : addend + operand;
            3'd1: result = a << operand[4:0];
            3'd2: result = {31'b0, $signed(a) < $signed(operand)};
            3'd3: result = {31'b0, a < operand};
            3'd4: result = a ^ operand;
            3'd5: result = funct7[5] ? $signed(a) >>> operand[4:0] : a >> operand[4:0];
            3'd6: result = a | operand;
            3'd7: result = a & operand;
        endcase
    end

    reg taken;
    always @* begin
        case (funct3)
            3'd0: taken = a == b;
            3'd1: taken = a != b;
            3'd4: taken = $signed(a) < $signed(b);
            3'd5: taken = $signed(a) >= $signed(b);
            3'd6: taken = a < b;
            default: taken = a >= b;
        endcase
    end

    // ---- Memory ---------------------------------------------------------------------

    wire        is_load   = opcode == LOAD;
    wire        is_store  = opcode == STORE;
    wire [31:0] address   = a + (is_store ? imm_s : imm_i);
    wire  [1:0] size      = funct3[1:0];
    wire        crooked   = size == 1 && address[0] || size == 2 && address[1:0] != 0;
    wire  [3:0] bytes     = size == 0 ? 4'b0001 : size == 1 ? 4'b0011 : 4'b1111;
    wire [31:0] loaded    = data_rdata >> {address[1:0], 3'b0};
    wire [31:0] extended  = size == 0 ? {{24{loaded[7] && !funct3[2]}}, loaded[7:0]}
                          : size == 1 ? {{16{loaded[15] && !funct3[2]}}, loaded[15:0]}
                          : loaded;
    wire  [3:0] lanes     = bytes << address[1:0];

    // ---- CSRs -----------------------------------------------------------------------

    wire [11:0] csr = insn[31:20];
    reg  [31:0] csr_value;
    reg         csr_exists;
    always @* begin
        csr_exists = 1;
        case (csr)
            12'h300: csr_value = {19'b0, 2'b11, 3'b0, mpie, 3'b0, mie_enabled, 3'b0};
            12'h301: csr_value = 32'h4000_0100;               // misa: RV32I
            12'h304: csr_value = {24'b0, mtie, 7'b0};
            12'h305: csr_value = mtvec;
            12'h340: csr_value = mscratch;
            12'h341: csr_value = mepc;
            12'h342: csr_value = mcause;
            12'h343: csr_value = mtval;
            12'h344: csr_value = {24'b0, timer_interrupt, 7'b0};
            12'hb00: csr_value = mcycle[31:0];
            12'hb80: csr_value = mcycle[63:32];
            12'hb02: csr_value = minstret[31:0];
            12'hb82: csr_value = minstret[63:32];
            12'hf11, 12'hf12, 12'hf13, 12'hf14: csr_value = 0; // who it is; mhartid
            default: begin
                csr_value = 0;
                csr_exists = 0;
            end
        endcase
    end
    wire [31:0] csr_operand = funct3[2] ? {27'b0, rs1} : a;
    wire        csr_writes  = is_csr && (funct3[1:0] == 1 || rs1 != 0);
    wire [31:0] csr_new     = funct3[1:0] == 1 ? csr_operand
                            : funct3[1:0] == 2 ? csr_value | csr_operand
                            : csr_value & ~csr_operand;

    // ---- Traps ----------------------------------------------------------------------

    wire [31:0] jump_to   = opcode == JAL  ? pc + imm_j
                          : opcode == JALR ? (a + imm_i) & ~32'h1
                          : pc + imm_b;
    wire        jumps     = opcode == JAL || opcode == JALR || opcode == BRANCH && taken;
    wire        astray    = jumps && jump_to[1:0] != 0;

    reg legal;
    always @* begin
        case (opcode)
            LUI, AUIPC, JAL: legal = 1;
            JALR:    legal = funct3 == 0;
            BRANCH:  legal = funct3[2:1] != 2'b01;
            LOAD:    legal = funct3 != 3 && funct3 != 6 && funct3 != 7;
            STORE:   legal = funct3 < 3;
            OP_IMM:  legal = funct3 == 1 ? funct7 == 0
                           : funct3 == 5 ? funct7 == 0 || funct7 == 7'h20 : 1;
            OP:      legal = funct7 == 0 || funct7 == 7'h20 && (funct3 == 0 || funct3 == 5);
            FENCE:   legal = funct3 == 0;
            SYSTEM:  legal = is_csr ? csr_exists && !(csr_writes && csr[11:10] == 3)
                           : is_mret || is_wfi || ecall || ebreak;
            default: legal = 0;
        endcase
    end

    wire       exception = !legal || astray || (is_load || is_store) && crooked
                         || ecall || ebreak;
    wire [4:0] code      = !legal ? 2 : astray ? 0 : ecall ? 11 : ebreak ? 3
                         : is_load ? 4 : 6;
    wire [31:0] tval     = !legal ? insn : astray ? jump_to : ebreak ? pc : ecall ? 0
                         : address;

    wire wanted = timer_interrupt && mtie && mie_enabled;
`ifdef BUG_LATE_INTERRUPT
    reg  interrupt;
    always @(posedge clk) interrupt <= !reset && wanted && !interrupt;
`else
    wire interrupt = wanted;
`endif

    // ---- The instruction ------------------------------------------------------------

    wire retires = !interrupt && !exception;
    wire writes  = retires && rd != 0 && opcode != BRANCH && opcode != STORE
                 && opcode != FENCE && (opcode != SYSTEM || is_csr);
    reg  [31:0] value;
    always @* begin
        case (opcode)
            LUI:       value = imm_u;
            AUIPC:     value = pc + imm_u;
            JAL, JALR: value = pc + 4;
            LOAD:      value = extended;
            SYSTEM:    value = csr_value;
            default:   value = result;
        endcase
    end
    wire [31:0] next = !retires ? {mtvec[31:2], 2'b0}
                     : is_mret ? mepc
                     : jumps ? jump_to
                     : pc + 4;

    assign insn_addr  = pc;
    assign data_addr  = {address[31:2], 2'b0};
    assign data_read  = !reset && retires && is_load;
    assign data_wdata = b << {address[1:0], 3'b0};
    wire [3:0] stores = !reset && retires && is_store ? lanes : 4'b0;
`ifdef BUG_WRITE_ENABLE
    assign data_write = size == 0 ? stores & 4'b0111 : stores;
`else
    assign data_write = stores;
`endif

    always @(posedge clk) begin
        mcycle <= mcycle + 1;
        if (reset) begin
            pc <= RESET_PC;
            {mie_enabled, mpie, mtie} <= 0;
            {mtvec, mscratch, mepc, mcause, mtval} <= 0;
            {mcycle, minstret} <= 0;
        end else begin
            pc <= next;
            if (writes) x[rd] <= value;
            if (retires) minstret <= minstret + 1;
            if (!retires) begin
                mepc <= pc;
                mcause <= interrupt ? 32'h8000_0007 : {27'b0, code};
                mtval <= interrupt ? 0 : tval;
                {mpie, mie_enabled} <= {mie_enabled, 1'b0};
            end else if (is_mret) begin
                {mpie, mie_enabled} <= {1'b1, mpie};
            end else if (csr_writes) begin
                case (csr)
                    12'h300: {mpie, mie_enabled} <= {csr_new[7], csr_new[3]};
                    12'h304: mtie <= csr_new[7];
                    12'h305: mtvec <= csr_new & ~32'h3;
                    12'h340: mscratch <= csr_new;
                    12'h341: mepc <= csr_new & ~32'h3;
                    12'h342: mcause <= csr_new;
                    12'h343: mtval <= csr_new;
                    12'hb00: mcycle[31:0] <= csr_new;
                    12'hb80: mcycle[63:32] <= csr_new;
                    12'hb02: minstret[31:0] <= csr_new;
                    12'hb82: minstret[63:32] <= csr_new;
                    default: ;
                endcase
            end
        end
    end

    // ---- What others see ------------------------------------------------------------

    always @(posedge clk) begin
        rvfi_valid     <= !reset && !interrupt;
        rvfi_order     <= reset ? 0 : rvfi_order + {63'b0, rvfi_valid};
        rvfi_insn      <= insn;
        rvfi_trap      <= exception;
        rvfi_halt      <= 0;
        rvfi_intr      <= first_of_handler;
        rvfi_mode      <= 3;
        rvfi_ixl       <= 1;
        rvfi_rd_addr   <= writes ? rd : 0;
        rvfi_rd_wdata  <= writes ? value : 0;
        rvfi_pc_rdata  <= pc;
        rvfi_pc_wdata  <= next;
        rvfi_mem_addr  <= data_addr;
        rvfi_mem_rmask <= retires && is_load ? lanes : 0;
        rvfi_mem_wmask <= data_write;
        rvfi_mem_rdata <= data_rdata;
        rvfi_mem_wdata <= data_wdata;
        // Until its first instruction is on the port.
        first_of_handler <= !reset && (!retires || first_of_handler && interrupt);
    end

    wire links_rd  = rd == 1 || rd == 5;
    wire links_rs1 = rs1 == 1 || rs1 == 5;
    always @(posedge clk) begin
        trace_valid   <= !reset;
        trace_iaddr   <= pc;
        trace_iretire <= retires;
        trace_cause   <= interrupt ? 7 : code;
        trace_tval    <= interrupt ? 0 : tval;
        trace_itype   <= interrupt ? 2
                       : exception ? 1
                       : is_mret ? 3
                       : opcode == BRANCH ? (taken ? 5 : 4)
                       : opcode == JAL ? (links_rd ? 9 : rd == 0 ? 11 : 15)
                       : opcode != JALR ? 0
                       : links_rd ? (links_rs1 && rs1 != rd ? 12 : 8)
                       : links_rs1 ? 13
                       : rd == 0 ? 10 : 14;
    end
endmodule
