// What the tracer takes from libraries of cells.
package cf_math_pkg;
    function automatic integer unsigned idx_width(input integer unsigned count);
        return count > 32'd1 ? unsigned'($clog2(count)) : 32'd1;
    endfunction
endpackage

// The clock is never stopped here.
module pulp_clock_gating (
    input  logic clk_i, en_i, test_en_i,
    output logic clk_o
);
    assign clk_o = clk_i;
endmodule

module edge_detect (
    input  logic clk_i, rst_ni, d_i,
    output logic re_o, fe_o
);
    logic this_cycle, last_cycle;
    always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) {last_cycle, this_cycle} <= '0;
        else         {last_cycle, this_cycle} <= {this_cycle, d_i};
    end
    assign re_o = this_cycle & ~last_cycle;
    assign fe_o = ~this_cycle & last_cycle;
endmodule
