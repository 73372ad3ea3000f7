-- A small RV32I core in VHDL, and signals of many types: what GHDL writes of them is read by the
-- tests of waveforms. The core executes one instruction in two cycles, without traps and CSRs.
-- The files beside this one are written by GHDL 2.0.0:
--
--   ghdl -a --std=08 core.vhd && ghdl -e --std=08 tb
--   ghdl -r --std=08 tb --stop-time=760ns --wave=core.ghw
--   ghdl -r --std=08 tb --stop-time=760ns --vcd=core.vcd

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

package port_types is
    subtype word is std_logic_vector(31 downto 0);
    type words is array (natural range <>) of word;

    type access_t is record
        addr  : word;
        rmask : std_logic_vector(3 downto 0);
        wmask : std_logic_vector(3 downto 0);
        wdata : word;
    end record;

    -- The port, named as RVFI has it.
    type rvfi_t is record
        valid     : std_logic;
        order     : unsigned(63 downto 0);
        insn      : word;
        trap      : std_ulogic;
        intr      : bit;
        mode      : std_logic_vector(1 downto 0);
        rd_addr   : std_logic_vector(4 downto 0);
        rd_wdata  : word;
        pc_rdata  : word;
        pc_wdata  : word;
        mem_addr  : word;
        mem_rmask : std_logic_vector(3 downto 0);
        mem_wmask : std_logic_vector(3 downto 0);
        mem_wdata : word;
    end record;

    type state_t is (fetch, execute, stopped);
    type colour_t is (red, green, blue, 'x', white);
    type grid_t is array (0 to 1, 2 downto 0) of std_logic;
    type table_t is array (1 to 2, 0 to 1) of integer;
    type colours_t is array (colour_t range red to blue) of boolean;
    type accesses_t is array (0 to 1) of access_t;
    type loose_t is record
        first : std_logic_vector;
        last  : bit_vector(0 to 3);
    end record;
end package;

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.port_types.all;

entity core is
    port (clk, resetn : in std_logic; rvfi : out rvfi_t);
end entity;

architecture rtl of core is
    -- Sums, stores and loads in a loop of three rounds, then a jump to itself.
    constant rom : words(0 to 15) := (
        x"80001137",   -- lui   sp, 0x80001
        x"00300093",   -- li    ra, 3
        x"00000193",   -- li    gp, 0
        x"001181b3",   -- add   gp, gp, ra
        x"00312023",   -- sw    gp, 0(sp)
        x"00010223",   -- sb    zero, 4(sp)
        x"00012203",   -- lw    tp, 0(sp)
        x"40325293",   -- srai  t0, tp, 3
        x"0051c333",   -- xor   t1, gp, t0
        x"fff08093",   -- addi  ra, ra, -1
        x"fe0092e3",   -- bnez  ra, -28
        x"00000397",   -- auipc t2, 0
        x"00c38467",   -- jalr  s0, 12(t2)
        x"00000013",   -- nop
        x"0000006f",   -- j     .
        x"00000013");
    signal regs   : words(1 to 8) := (others => (others => '0'));
    signal memory : words(0 to 1) := (others => (others => '0'));
    signal state  : state_t := fetch;
    signal pc     : unsigned(31 downto 0) := x"80000000";
    signal count  : unsigned(63 downto 0) := (others => '0');
    signal insn   : word;
begin
    process (clk)
        variable i, a, b, d, target : word;
        variable offset : integer;
        variable port_v : rvfi_t;
        function reg(number : std_logic_vector(4 downto 0); file_v : words) return word is
        begin
            if unsigned(number) = 0 then
                return x"00000000";
            end if;
            return file_v(to_integer(unsigned(number)));
        end function;
    begin
        if rising_edge(clk) then
            rvfi.valid <= '0';
            if resetn = '0' then
                state <= fetch;
                pc <= x"80000000";
                count <= (others => '0');
            elsif state = fetch then
                insn <= rom(to_integer(pc(5 downto 2)));
                state <= execute;
            else
                i := insn;
                a := reg(i(19 downto 15), regs);
                d := (others => '0');
                target := std_logic_vector(pc + 4);
                port_v := (valid => '1', order => count, insn => i, trap => '0', intr => '0',
                           mode => "11", rd_addr => i(11 downto 7), rd_wdata => (others => '0'),
                           pc_rdata => std_logic_vector(pc), pc_wdata => (others => '0'),
                           mem_addr => (others => '0'), mem_rmask => "0000",
                           mem_wmask => "0000", mem_wdata => (others => '0'));
                case i(6 downto 2) is
                    when "01101" => d := i(31 downto 12) & x"000";
                    when "00101" => d := std_logic_vector(pc + (unsigned(i) and x"fffff000"));
                    when "00100" | "01100" =>
                        b := std_logic_vector(resize(signed(i(31 downto 20)), 32));
                        if i(5) = '1' then
                            b := reg(i(24 downto 20), regs);
                        end if;
                        case i(14 downto 12) is
                            when "000" => d := std_logic_vector(unsigned(a) + unsigned(b));
                            when "100" => d := a xor b;
                            when "101" => d := std_logic_vector(
                                shift_right(signed(a), to_integer(unsigned(b(4 downto 0)))));
                            when others => null;
                        end case;
                    when "11000" =>
                        port_v.rd_addr := "00000";
                        offset := to_integer(signed(
                            i(31) & i(7) & i(30 downto 25) & i(11 downto 8) & '0'));
                        if a /= reg(i(24 downto 20), regs) then
                            target := std_logic_vector(unsigned(signed(pc) + offset));
                        end if;
                    when "11011" => target := std_logic_vector(pc);
                    when "11001" =>
                        d := target;
                        target := std_logic_vector(
                            unsigned(signed(a) + resize(signed(i(31 downto 20)), 32)));
                    when "00000" =>
                        d := memory(to_integer(unsigned(i(22 downto 22))));
                        port_v.mem_addr := a;
                        port_v.mem_rmask := "1111";
                    when "01000" =>
                        port_v.rd_addr := "00000";
                        b := reg(i(24 downto 20), regs);
                        port_v.mem_addr := std_logic_vector(unsigned(a) + unsigned(i(11 downto 7)));
                        port_v.mem_wdata := b;
                        port_v.mem_wmask := "1111";
                        if i(12) = '0' and i(13) = '0' then
                            port_v.mem_wmask := "0001";
                            memory(to_integer(unsigned(i(9 downto 9))))(7 downto 0) <= b(7 downto 0);
                        else
                            memory(to_integer(unsigned(i(9 downto 9)))) <= b;
                        end if;
                    when others => null;
                end case;
                if unsigned(port_v.rd_addr) /= 0 then
                    regs(to_integer(unsigned(port_v.rd_addr))) <= d;
                    port_v.rd_wdata := d;
                end if;
                port_v.pc_wdata := target;
                rvfi <= port_v;
                pc <= unsigned(target);
                count <= count + 1;
                state <= fetch;
            end if;
        end if;
    end process;
end architecture;

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.port_types.all;

entity tb is
end entity;

architecture sim of tb is
    signal clk, gated : std_logic := '0';
    signal resetn     : std_logic := '0';
    signal rvfi       : rvfi_t;
    -- Signals of other types, which change with the cycles.
    signal cycle      : integer := -3;
    signal few        : natural range 0 to 9 := 0;
    signal flag       : boolean := false;
    signal single     : bit := '1';
    signal bits       : bit_vector(7 downto 0) := x"a5";
    signal rising     : std_logic_vector(0 to 7) := "UX01ZWLH";
    signal empty      : std_logic_vector(0 downto 1);
    signal colour     : colour_t := red;
    signal colours    : colours_t := (others => false);
    signal letter     : character := 'a';
    signal name       : string(1 to 4) := "abcd";
    signal passed     : time := 0 ns;
    signal share      : real := 0.5;
    signal grid       : grid_t := (others => (others => '0'));
    signal numbers    : table_t := ((1, -2), (3, 4));
    signal accesses   : accesses_t;
    signal loose      : loose_t(first(4 downto 0)) := (first => "00000", last => "0000");
begin
    clk <= not clk after 5 ns when cycle < 72 else '0';
    gated <= clk and resetn;   -- changes a delta cycle after clk
    resetn <= '1' after 32 ns;

    core : entity work.core port map (clk, resetn, rvfi);

    process (clk)
        variable n : integer;
    begin
        if rising_edge(clk) then
            n := cycle + 1;
            cycle <= n;
            few <= n mod 10;
            flag <= n mod 3 = 0;
            single <= not single;
            bits <= bits(6 downto 0) & not bits(7);
            rising <= rising(7) & rising(0 to 6);
            colour <= colour_t'val(n mod 5);
            colours(colour_t'val(n mod 3)) <= n mod 2 = 0;
            letter <= character'val(97 + n mod 26);
            name <= name(2 to 4) & letter;
            passed <= now;
            share <= real(n) / 4.0;
            grid(n mod 2, n mod 3) <= not grid(n mod 2, n mod 3);
            numbers(1 + n mod 2, n / 2 mod 2) <= n * 1000;
            accesses(n mod 2).addr <= std_logic_vector(to_signed(n, 32));
            accesses(n mod 2).wmask <= std_logic_vector(to_unsigned(n mod 16, 4));
            loose.first <= std_logic_vector(to_unsigned(n mod 32, 5));
            loose.last <= bits(3 downto 0);
        end if;
    end process;

    lanes : for lane in 0 to 1 generate
        signal tap : std_logic;
    begin
        tap <= rvfi.pc_rdata(2 + lane);
    end generate;
end architecture;
