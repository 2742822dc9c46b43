// Forward of one GRU layer.
//
//     r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)        z likewise
//     q = W_hn h + b_hn,   n = tanh(W_in x + b_in + r q),   h' = n + z (h - n)
//
// A chunk's input projections are one matrix product, then its steps follow one by one. Both read weights packed
// unit block by unit block (a vector of hidden units): for each k the vectors of r, z and n side by side.
#pragma once

#include "activation.hpp"
#include "gru_plan.hpp"

namespace synv {
namespace SYNV_ISA {

// Packs w (3H, depth) for the forward: for each unit block, k, gate: a vector of units, zero beyond H.
template <class T> void pack_gates(T const* w, std::ptrdiff_t hidden, std::ptrdiff_t depth, T* to) {
    for (std::ptrdiff_t unit = 0; unit < hidden; unit += WIDTH<T>) {
        for (std::ptrdiff_t k = 0; k < depth; ++k) {
            for (int gate = 0; gate < 3; ++gate) {
                for (int i = 0; i < WIDTH<T>; ++i) {
                    *to++ = unit + i < hidden ? w[(gate * hidden + unit + i) * depth + k] : T(0);
                }
            }
        }
    }
}

// Biases of r, z (both sums), n (input side) and q, unit block by unit block.
template <class T> void pack_biases(T const* b_ih, T const* b_hh, std::ptrdiff_t hidden, T* to) {
    for (std::ptrdiff_t unit = 0; unit < hidden; unit += WIDTH<T>) {
        for (int gate = 0; gate < 4; ++gate) {
            for (int i = 0; i < WIDTH<T>; ++i, ++to) {
                *to = T(0);
                if (unit + i >= hidden) continue;
                if (b_ih && gate < 3) *to += b_ih[gate * hidden + unit + i];
                if (b_hh && gate != 2) *to += b_hh[(gate < 2 ? gate : 2) * hidden + unit + i];
            }
        }
    }
}

template <class T> struct GruForward {
    GruForwardArgs<T> const& args;
    std::ptrdiff_t blocks;  // unit blocks
    Plan plan;
    struct Workspace {
        T *x, *projected, *state[2];
    };

    T *w_ih, *w_hh, *bias;  // packed
    Workspace* spaces;      // one for each thread

    explicit GruForward(GruForwardArgs<T> const& a) : args(a), blocks(ceil_div(a.hidden, WIDTH<T>)) {}

    void reserve(Arena& arena, int groups) {
        plan.reserve(arena, args.batch, args.steps, args.mask != nullptr);
        w_ih = arena.take<T>(blocks * 3 * WIDTH<T> * args.inputs);
        w_hh = arena.take<T>(blocks * 3 * WIDTH<T> * args.hidden);
        bias = arena.take<T>(blocks * 4 * WIDTH<T>);
        spaces = arena.take<Workspace>(groups);
        for (int i = 0; i < groups; ++i) {
            Workspace w;
            w.x = arena.take<T>(CHUNK_ENTRIES * args.inputs);
            w.projected = arena.take<T>(CHUNK_ENTRIES * blocks * 3 * WIDTH<T>);
            for (int j = 0; j < 2; ++j) w.state[j] = arena.take<T>(BLOCK_ROWS * blocks * WIDTH<T>);
            if (spaces) spaces[i] = w;
        }
    }

    bool run() {
        bool const team = as_team(args.threads, args.batch);
        int const groups = team ? 2 : group_count(args.threads, args.batch);
        Arena arena;
        reserve(arena, groups);
        if (!arena.allocate()) return false;
        reserve(arena, groups);
        plan.fill(args.mask);
        pack_gates(args.w_ih, args.hidden, args.inputs, w_ih);
        pack_gates(args.w_hh, args.hidden, args.hidden, w_hh);
        pack_biases(args.b_ih, args.b_hh, args.hidden, bias);
        if (team) {
            for_blocks(plan, 0, 1, [&](Block const& block) { march_as_team(block); });
        } else {
            parallel_groups(groups, [&](int group) {
                for_blocks(plan, group, groups, [&](Block const& block) { march(block, spaces[group]); });
            });
        }
        zero_padding(plan, args.mask, args.out, args.hidden);
        zero_padding(plan, args.mask, args.gates, 4 * args.hidden);
        return true;
    }

    void start(Block const& block, Workspace const& work) const {
        std::memset(work.state[0], 0, std::size_t(block.rows * blocks * WIDTH<T>) * sizeof(T));
        for (int r = 0; r < block.rows; ++r) {
            T const* const from = args.h0 + block.row[r] * args.hidden;
            copy(from, work.state[0] + r * blocks * WIDTH<T>, args.hidden, args.hidden);
            if (block.length[r] == 0) copy(from, args.h_n + block.row[r] * args.hidden, args.hidden, args.hidden);
        }
    }

    void march(Block const& block, Workspace const& work) const {
        start(block, work);
        for (std::ptrdiff_t first = 0; first < block.length[0]; first += block.chunk_steps()) {
            Chunk const chunk(block, first);
            gather(block, chunk, work);
            project(chunk.entries(), work, 0, blocks);
            for (int i = 0; i < chunk.steps; ++i) step(block, chunk, i, work);
        }
    }

    // One thread steps through a chunk while the others project the next.
    void march_as_team(Block const& block) {
        spaces[1].state[0] = spaces[0].state[0];
        spaces[1].state[1] = spaces[0].state[1];
        start(block, spaces[0]);
        int entries = 0;  // of the chunk that is projected
        auto const job = [&](int part) {
            Range const units(blocks, 1, part, TEAM_PARTS);
            project(entries, spaces[1], units.begin, units.end);
        };
        run_team(args.threads, [&](Team& team) {
            std::ptrdiff_t const size = block.chunk_steps();
            for (std::ptrdiff_t first = -size; first < block.length[0]; first += size) {
                Chunk const chunk(block, first < 0 ? block.length[0] : first), next(block, first + size);
                gather(block, next, spaces[1]);
                entries = next.entries();
                team.open();
                for (int i = 0; i < chunk.steps; ++i) step(block, chunk, i, spaces[0]);
                team.complete(job);
                swap_spaces();
            }
        }, job);
    }

    void swap_spaces() {
        Workspace const first = spaces[0];
        spaces[0] = spaces[1];
        spaces[1] = first;
    }

    void gather(Block const& block, Chunk const& chunk, Workspace const& work) const {
        chunk.each(block, [&](int entry, std::ptrdiff_t row, std::ptrdiff_t at, std::ptrdiff_t) {
            T const* const from = args.x.data + row * args.x.row + at * args.x.step;
            copy(from, work.x + entry * args.inputs, args.inputs, args.inputs);
        });
    }

    // projected[entry][unit block][gate] = W_i x + bias
    void project(int entries, Workspace const& work, std::ptrdiff_t begin, std::ptrdiff_t end) const {
        std::ptrdiff_t const depth = args.inputs;
        for (std::ptrdiff_t unit = begin; unit < end; ++unit) {
            T const* const w = w_ih + unit * depth * 3 * WIDTH<T>;
            for_row_tiles<TALL>(entries, [&](std::ptrdiff_t entry, auto rows) {
                constexpr int R = decltype(rows)::value;
                Tile<T, R, 3> tile;
                SYNV_UNROLL for (int c = 0; c < 3; ++c) {
                    Vec<T> const b = load(bias + (unit * 4 + c) * WIDTH<T>);
                    SYNV_UNROLL for (int r = 0; r < R; ++r) tile.acc[r][c] = b;
                }
                tile.accumulate(work.x + entry * depth, depth, 1, w, 3 * WIDTH<T>, depth);
                T* const to = work.projected + (entry * blocks + unit) * 3 * WIDTH<T>;
                SYNV_UNROLL for (int r = 0; r < R; ++r) {
                    SYNV_UNROLL for (int c = 0; c < 3; ++c) store(to + (r * blocks * 3 + c) * WIDTH<T>, tile.acc[r][c]);
                }
            });
        }
    }

    // One step of all running rows. Odd steps go through the weights backwards: what the last step used last is
    // still in the nearest cache.
    void step(Block const& block, Chunk const& chunk, int i, Workspace const& work) const {
        std::ptrdiff_t const s = chunk.first + i, stride = blocks * WIDTH<T>;
        T const* const state = work.state[s % 2];
        for (std::ptrdiff_t turn = 0; turn < blocks; ++turn) {
            std::ptrdiff_t const unit = s % 2 ? blocks - 1 - turn : turn;
            T const* const w = w_hh + unit * args.hidden * 3 * WIDTH<T>;
            for_row_tiles<TALL>(chunk.offset[i + 1] - chunk.offset[i], [&](std::ptrdiff_t row, auto rows) {
                constexpr int R = decltype(rows)::value;
                Tile<T, R, 3> tile;
                tile.clear();
                tile.accumulate(state + row * stride, stride, 1, w, 3 * WIDTH<T>, args.hidden);
                for (int r = 0; r < R; ++r) finish(block, chunk, i, int(row) + r, unit, tile.acc[r], work);
            });
        }
    }

    // Gates and new state of one row's unit block from the products `wh` of r, z and n.
    SYNV_SEPARATE void finish(Block const& block, Chunk const& chunk, int i, int r, std::ptrdiff_t unit,
                            Vec<T> const (&wh)[3], Workspace const& work) const {
        std::ptrdiff_t const s = chunk.first + i, column = unit * WIDTH<T>, count = args.hidden - column;
        T const* const wx = work.projected + ((chunk.offset[i] + r) * blocks + unit) * 3 * WIDTH<T>;
        std::ptrdiff_t const cell = (r * blocks + unit) * WIDTH<T>;
        Vec<T> const h = load(work.state[s % 2] + cell);
        Vec<T> const reset = sigmoid<T>(load(wx) + wh[0]);
        Vec<T> const z = sigmoid<T>(load(wx + WIDTH<T>) + wh[1]);
        Vec<T> const q = wh[2] + load(bias + (unit * 4 + 3) * WIDTH<T>);
        Vec<T> const n = hyperbolic_tangent<T>(fma<T>(reset, q, load(wx + 2 * WIDTH<T>)));
        Vec<T> const next = fma<T>(z, h - n, n);
        store(work.state[(s + 1) % 2] + cell, next);
        std::ptrdiff_t const row = block.row[r], at = plan.where(row, s);
        store_first(args.out.data + row * args.out.row + at * args.out.step + column, next, count);
        if (s + 1 == block.length[r]) store_first(args.h_n + row * args.hidden + column, next, count);
        if (!args.gates.data) return;
        T* const gates = args.gates.data + row * args.gates.row + at * args.gates.step + column;
        store_first(gates, reset, count);
        store_first(gates + args.hidden, z, count);
        store_first(gates + 2 * args.hidden, n, count);
        store_first(gates + 3 * args.hidden, q, count);
    }
};

}  // namespace SYNV_ISA
}  // namespace synv
