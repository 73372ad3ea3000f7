// Rows of a trace ingress port into a trace block, and its packets into a file.
//
//     rows ROWS.csv BLOCK.trace
//
// ROWS.csv is what `hartrace run --log ingress=FILE` and `hartrace-proof block` write: a
// header with the names of the columns, then one row for each cycle in which something
// happens. Addresses and trap values are hexadecimal, everything else is decimal. A packet is
// written as the reference models frame it: a byte with its length and kind, the payload.

#include "Vtop.h"
#include "verilated.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Rows {
    std::map<std::string, size_t> columns;
    std::vector<std::vector<uint64_t>> rows;

    explicit Rows(std::istream &in) {
        std::string line, cell;
        std::getline(in, line);
        std::vector<int> bases;
        for (std::stringstream header(line); std::getline(header, cell, ',');) {
            columns[cell] = bases.size();
            bool hex = cell.rfind("iaddr", 0) == 0 || cell == "tval";
            bases.push_back(hex ? 16 : 10);
        }
        while (std::getline(in, line)) {
            std::vector<uint64_t> row;
            for (std::stringstream cells(line); std::getline(cells, cell, ',');) {
                row.push_back(std::strtoull(cell.c_str(), nullptr, bases.at(row.size())));
            }
            row.resize(bases.size());
            rows.push_back(row);
        }
    }

    uint64_t get(size_t row, const char *name) const {
        auto column = columns.find(name);
        bool known = column != columns.end() && row < rows.size();
        return known ? rows[row][column->second] : 0;
    }
};

// Uninferable calls, jumps and returns are one type at this port.
uint64_t itype(uint64_t value) {
    return value == 6 || value == 8 || value >= 12 ? 10 : value;
}

bool is_trap(uint64_t itype) { return itype == 1 || itype == 2; }

struct Bench {
    Vtop top;
    std::ofstream out;

    void cycle() {
        top.eval();
        if (top.packet_valid_o) {
            unsigned length = top.packet_length_o;
            out.put(static_cast<char>(2 << 5 | length));
            for (unsigned byte = 0; byte < length; byte++) {
                out.put(static_cast<char>(top.packet_payload_o[byte / 4] >> (byte % 4 * 8)));
            }
        }
        top.clk_i = 1;
        top.eval();
        top.clk_i = 0;
        top.eval();
    }
};

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::cerr << "usage: rows ROWS.csv BLOCK.trace\n";
        return 2;
    }
    std::ifstream in(argv[1]);
    if (!in) {
        std::cerr << argv[1] << ": cannot be read\n";
        return 1;
    }
    Rows rows(in);
    Bench bench;
    bench.out.open(argv[2], std::ios::binary);
    Vtop &top = bench.top;
    top.valid_i = 0;
    top.rst_ni = 0;
    bench.cycle();
    top.rst_ni = 1;
    uint64_t handler = 0, epc = 0;
    // A few empty cycles at the end let the last packets out.
    for (size_t row = 0; row < rows.rows.size() + 8; row++) {
        uint64_t type = itype(rows.get(row, "itype_0"));
        uint64_t last = 1ull << rows.get(row, "ilastsize_0");
        // Rows of single retirement count instructions, this port counts halfwords.
        uint64_t halfwords = rows.get(row, "iretire_0") ? last : 0;
        if (is_trap(type)) {
            handler = rows.get(row + 1, "iaddr_0");
            epc = rows.get(row, "iaddr_0") + 2 * halfwords;
        }
        top.valid_i = row < rows.rows.size();
        top.itype_i = type;
        top.cause_i = rows.get(row, "cause");
        top.tval_i = rows.get(row, "tval");
        top.priv_i = rows.get(row, "priv");
        top.iaddr_i = rows.get(row, "iaddr_0");
        top.iretire_i = halfwords;
        top.ilastsize_i = rows.get(row, "ilastsize_0");
        top.tvec_i = handler;
        top.epc_i = epc;
        bench.cycle();
        // The block is on a few cycles after the first row.
        for (int wait = 0; row == 0 && wait < 8; wait++) {
            top.valid_i = 0;
            bench.cycle();
        }
    }
    bench.out.close();
    return bench.out ? 0 : 1;
}
