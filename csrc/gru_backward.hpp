// Backward of one GRU layer. With g = dL/dh' (all that reaches the state after the step):
//
//     dn = g (1 - z) (1 - n^2)   dz = g (h - n) z (1 - z)   dr = dn q r (1 - r)   dq = dn r
//     dL/dh = g z + [dq, dr, dz] W_h       dL/dx = [dr, dz, dn] W_i
//
// Chunk by chunk from the end: the steps one by one, then the chunk's matrix products while all is in cache. The
// gradients of an entry are kept in the order q, r, z, n: the two triples above both lie side by side.
#pragma once

#include "gru_plan.hpp"

namespace synv {
namespace SYNV_ISA {

template <class T> struct GruBackward {
    GruBackwardArgs<T> const& args;
    std::ptrdiff_t hidden, inputs, hidden_padded, inputs_padded;
    Plan plan;
    T *w_ih, *w_hh;  // packed

    struct Workspace {
        T *x, *h, *grad_gates, *grad_state;        // of the chunk: (entries, D), (entries, H), (entries, 4H); (rows, H)
        T *grad_w_ih, *grad_w_hh, *grad_bias;      // this thread's sums: (3H, D), (3H, H) in the order q, r, z; (4H)
    };
    Workspace* spaces;

    explicit GruBackward(GruBackwardArgs<T> const& a)
        : args(a), hidden(a.hidden), inputs(a.inputs), hidden_padded(padded<T>(a.hidden)),
          inputs_padded(padded<T>(a.inputs)) {}

    void reserve(Arena& arena, int groups) {
        plan.reserve(arena, args.batch, args.steps, args.mask != nullptr);
        w_ih = arena.take<T>(3 * hidden * inputs_padded);
        w_hh = arena.take<T>(3 * hidden * hidden_padded);
        spaces = arena.take<Workspace>(groups);
        for (int i = 0; i < groups; ++i) {
            Workspace w;
            w.x = arena.take<T>(CHUNK_ENTRIES * inputs_padded);
            w.h = arena.take<T>(CHUNK_ENTRIES * hidden_padded);
            w.grad_gates = arena.take<T>(CHUNK_ENTRIES * 4 * hidden);
            w.grad_state = arena.take<T>(BLOCK_ROWS * hidden_padded);
            w.grad_w_ih = arena.take<T>(3 * hidden * inputs_padded);
            w.grad_w_hh = arena.take<T>(3 * hidden * hidden_padded);
            w.grad_bias = arena.take<T>(4 * hidden);
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
        pack_panels(args.w_ih, 3 * hidden, inputs, 0, w_ih);
        pack_panels(args.w_hh, 3 * hidden, hidden, 2 * hidden, w_hh);
        for (int i = 0; i < groups; ++i) {
            zero(spaces[i].grad_w_ih, 3 * hidden * inputs_padded);
            zero(spaces[i].grad_w_hh, 3 * hidden * hidden_padded);
            zero(spaces[i].grad_bias, 4 * hidden);
        }
        if (team) {
            for_blocks(plan, 0, 1, [&](Block const& block) { march_as_team(block); });
        } else {
            parallel_groups(groups, [&](int group) {
                for_blocks(plan, group, groups, [&](Block const& block) { march(block, spaces[group]); });
            });
        }
        add_up(groups);
        zero_padding(plan, args.mask, args.grad_x, inputs);
        return true;
    }

    static void zero(T* to, std::ptrdiff_t count) { std::memset(to, 0, std::size_t(count) * sizeof(T)); }

    void start(Block const& block, Workspace const& work) const {
        for (int r = 0; r < block.rows; ++r) {
            T const* const from = args.grad_h_n + block.row[r] * hidden;
            copy(from, work.grad_state + r * hidden_padded, hidden, hidden_padded);
        }
    }

    void finish(Block const& block, Workspace const& work) const {
        for (int r = 0; r < block.rows; ++r) {
            copy(work.grad_state + r * hidden_padded, args.grad_h0 + block.row[r] * hidden, hidden, hidden);
        }
    }

    void march(Block const& block, Workspace const& work) const {
        start(block, work);
        std::ptrdiff_t const size = block.chunk_steps();
        for (std::ptrdiff_t first = ceil_div(block.length[0], size) * size - size; first >= 0; first -= size) {
            Chunk const chunk(block, first);
            gather(block, chunk, work);
            for (int i = chunk.steps - 1; i >= 0; --i) step(block, chunk, i, work);
            products(block, chunk, work, 0, 1);
        }
        finish(block, work);
    }

    // One thread steps through a chunk while the others do the matrix products of the one behind it.
    void march_as_team(Block const& block) {
        spaces[1].grad_state = spaces[0].grad_state;
        start(block, spaces[0]);
        Chunk const* last = nullptr;
        auto const job = [&](int part) { products(block, *last, spaces[1], part, TEAM_PARTS); };
        run_team(args.threads, [&](Team& team) {
            std::ptrdiff_t const size = block.chunk_steps();
            for (std::ptrdiff_t first = ceil_div(block.length[0], size) * size - size; first >= -size; first -= size) {
                Chunk const chunk(block, first < 0 ? block.length[0] : first), behind(block, first + size);
                last = &behind;
                gather(block, chunk, spaces[0]);
                team.open();
                for (int i = chunk.steps - 1; i >= 0; --i) step(block, chunk, i, spaces[0]);
                team.complete(job);
                swap_spaces();
            }
        }, job);
        finish(block, spaces[0]);
    }

    void swap_spaces() {
        Workspace const first = spaces[0];
        spaces[0] = spaces[1];
        spaces[1] = first;
    }

    // What follows from a chunk's gate gradients; piece `part` of `parts`.
    void products(Block const& block, Chunk const& chunk, Workspace const& work, int part, int parts) const {
        int const entries = chunk.entries();
        if (args.grad_x.data) input_gradients(block, chunk, work, Range(entries, TALL, part, parts));
        Range const rows(3 * hidden, TALL, part, parts);
        weight_gradients(work.grad_gates + hidden, work.x, inputs_padded, entries, work.grad_w_ih, rows);
        weight_gradients(work.grad_gates, work.h, hidden_padded, entries, work.grad_w_hh, rows);
        if (part == 0) bias_gradients(entries, work);
    }

    // The chunk's inputs and the states before its steps, side by side and filled up with zeros.
    void gather(Block const& block, Chunk const& chunk, Workspace const& work) const {
        chunk.each(block, [&](int entry, std::ptrdiff_t row, std::ptrdiff_t at, std::ptrdiff_t s) {
            copy(args.x.data + row * args.x.row + at * args.x.step, work.x + entry * inputs_padded, inputs,
                 inputs_padded);
            T const* const before = s == 0 ? args.h0 + row * hidden
                                           : args.out.data + row * args.out.row + plan.where(row, s - 1) * args.out.step;
            copy(before, work.h + entry * hidden_padded, hidden, hidden_padded);
        });
    }

    // One step back for all running rows: gradients of the gates, then of the state before.
    void step(Block const& block, Chunk const& chunk, int i, Workspace const& work) const {
        int const entry = chunk.offset[i], running = chunk.offset[i + 1] - entry;
        for (int r = 0; r < running; ++r) gate_gradients(block, r, chunk.first + i, entry + r, work);
        T const* const gates = work.grad_gates + entry * 4 * hidden;
        for_panels(hidden_padded / WIDTH<T>, [&](std::ptrdiff_t v, auto vectors) {
            constexpr int C = decltype(vectors)::value;
            T const* const w = w_hh + v * WIDTH<T> * 3 * hidden;
            for_row_tiles<TALLEST_OF<C>>(running, [&](std::ptrdiff_t row, auto rows) {
                constexpr int R = decltype(rows)::value;
                Tile<T, R, C> tile;
                T* const to = work.grad_state + row * hidden_padded + v * WIDTH<T>;
                SYNV_UNROLL for (int r = 0; r < R; ++r) {
                    SYNV_UNROLL for (int c = 0; c < C; ++c) {
                        tile.acc[r][c] = load(to + r * hidden_padded + c * WIDTH<T>);
                    }
                }
                tile.accumulate(gates + row * 4 * hidden, 4 * hidden, 1, w, C * WIDTH<T>, 3 * hidden);
                SYNV_UNROLL for (int r = 0; r < R; ++r) {
                    SYNV_UNROLL for (int c = 0; c < C; ++c) {
                        store(to + r * hidden_padded + c * WIDTH<T>, tile.acc[r][c]);
                    }
                }
            });
        });
    }

    // Writes q, r, z, n of one entry and leaves g z in the state's gradient.
    SYNV_INLINE void gate_gradients(Block const& block, int r, std::ptrdiff_t s, int entry,
                                    Workspace const& work) const {
        std::ptrdiff_t const row = block.row[r], at = plan.where(row, s);
        T const* const gates = args.gates.data + row * args.gates.row + at * args.gates.step;
        T const* const grad_out = args.grad_out.data + row * args.grad_out.row + at * args.grad_out.step;
        T* const state = work.grad_state + r * hidden_padded;
        T* const to = work.grad_gates + entry * 4 * hidden;
        if (s > 0) {  // walking backwards through many rows is more than the hardware foresees
            std::ptrdiff_t const before = plan.where(row, s - 1) - at;
            prefetch(gates + before * args.gates.step, 4 * hidden);
            prefetch(grad_out + before * args.grad_out.step, hidden);
        }
        Vec<T> const one = splat(T(1));
        for (std::ptrdiff_t u = 0; u < hidden; u += WIDTH<T>) {
            std::ptrdiff_t const count = hidden - u;
            Vec<T> const reset = load_first(gates + u, count), z = load_first(gates + hidden + u, count);
            Vec<T> const n = load_first(gates + 2 * hidden + u, count), q = load_first(gates + 3 * hidden + u, count);
            Vec<T> const h = load(work.h + entry * hidden_padded + u);
            Vec<T> const g = load(state + u) + load_first(grad_out + u, count);
            Vec<T> const dn = g * (one - z) * (one - n * n);
            store_first(to + u, dn * reset, count);
            store_first(to + hidden + u, dn * q * reset * (one - reset), count);
            store_first(to + 2 * hidden + u, g * (h - n) * z * (one - z), count);
            store_first(to + 3 * hidden + u, dn, count);
            store(state + u, g * z);
        }
    }

    // grad_x = [r, z, n] W_i for all entries of the chunk
    void input_gradients(Block const& block, Chunk const& chunk, Workspace const& work, Range const& range) const {
        T* target[CHUNK_ENTRIES];
        chunk.each(block, [&](int entry, std::ptrdiff_t row, std::ptrdiff_t at, std::ptrdiff_t) {
            target[entry] = args.grad_x.data + row * args.grad_x.row + at * args.grad_x.step;
        });
        for_panels(inputs_padded / WIDTH<T>, [&](std::ptrdiff_t v, auto vectors) {
            constexpr int C = decltype(vectors)::value;
            T const* const w = w_ih + v * WIDTH<T> * 3 * hidden;
            for_row_tiles<TALLEST_OF<C>>(range.size(), [&](std::ptrdiff_t offset, auto rows) {
                constexpr int R = decltype(rows)::value;
                std::ptrdiff_t const entry = range.begin + offset;
                Tile<T, R, C> tile;
                tile.clear();
                tile.accumulate(work.grad_gates + (entry * 4 + 1) * hidden, 4 * hidden, 1, w, C * WIDTH<T>, 3 * hidden);
                SYNV_UNROLL for (int r = 0; r < R; ++r) {
                    SYNV_UNROLL for (int c = 0; c < C; ++c) {
                        std::ptrdiff_t const column = (v + c) * WIDTH<T>;
                        store_first(target[entry + r] + column, tile.acc[r][c], inputs - column);
                    }
                }
            });
        });
    }

    // to (3H, width) += transposed gates (entries, 3H) times values (entries, width). The chunk is summed on its own
    // first: long sums of floats stay accurate.
    void weight_gradients(T const* gates, T const* values, std::ptrdiff_t width, int entries, T* to,
                          Range const& range) const {
        for_panels(width / WIDTH<T>, [&](std::ptrdiff_t v, auto vectors) {
            constexpr int C = decltype(vectors)::value;
            for_row_tiles<TALLEST_OF<C>>(range.size(), [&](std::ptrdiff_t offset, auto rows) {
                constexpr int R = decltype(rows)::value;
                std::ptrdiff_t const row = range.begin + offset;
                Tile<T, R, C> tile;
                tile.clear();
                tile.accumulate(gates + row, 1, 4 * hidden, values + v * WIDTH<T>, width, entries);
                SYNV_UNROLL for (int r = 0; r < R; ++r) {
                    SYNV_UNROLL for (int c = 0; c < C; ++c) {
                        T* const sum = to + (row + r) * width + (v + c) * WIDTH<T>;
                        store(sum, load(sum) + tile.acc[r][c]);
                    }
                }
            });
        });
    }

    void bias_gradients(int entries, Workspace const& work) const {
        for (std::ptrdiff_t u = 0; u < 4 * hidden; u += WIDTH<T>) {
            std::ptrdiff_t const count = 4 * hidden - u;
            Vec<T> sum = splat(T(0));
            for (int e = 0; e < entries; ++e) sum += load_first(work.grad_gates + e * 4 * hidden + u, count);
            store_first(work.grad_bias + u, load_first(work.grad_bias + u, count) + sum, count);
        }
    }

    // Sums of the threads, in a fixed order, to where they belong.
    void add_up(int groups) const {
        for (std::ptrdiff_t j = 0; j < 3 * hidden; ++j) {
            std::ptrdiff_t const shifted = (j + hidden) % (3 * hidden);  // r, z, n among q, r, z
            T bias_ih = T(0), bias_hh = T(0);
            for (int g = 0; g < groups; ++g) {
                bias_ih += spaces[g].grad_bias[hidden + j];
                bias_hh += spaces[g].grad_bias[shifted];
                add_row(spaces[g].grad_w_ih + j * inputs_padded, args.grad_w_ih + j * inputs, inputs, g == 0);
                add_row(spaces[g].grad_w_hh + shifted * hidden_padded, args.grad_w_hh + j * hidden, hidden, g == 0);
            }
            args.grad_b_ih[j] = bias_ih;
            args.grad_b_hh[j] = bias_hh;
        }
    }

    static void add_row(T const* from, T* to, std::ptrdiff_t count, bool start) {
        for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = (start ? T(0) : to[i]) + from[i];
    }
};

}  // namespace SYNV_ISA
}  // namespace synv
