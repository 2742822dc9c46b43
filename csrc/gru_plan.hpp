// Who computes what in the GRU kernels: rows to threads, real steps to chunks.
//
// A row is the list of its real steps; padded ones do not exist for the kernels. Rows are sorted by length, longest
// first, and dealt out to the threads in turn; so a thread's rows that still run at step s are a prefix of its rows.
// A chunk is a range of steps of a block of rows; its (step, row) pairs that exist are its entries, step by step.
#pragma once

#include <cstdlib>

#include "kernels.hpp"
#include "team.hpp"
#include "tile.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace synv {
namespace SYNV_ISA {

constexpr int BLOCK_ROWS = 16;      // rows that march together; one pass over the weights serves them all
constexpr int CHUNK_ENTRIES = 128;  // entries of a chunk; its arrays stay in the second-level cache

// One block of working memory, handed out in aligned pieces. Measured first (data null), then filled.
struct Arena {
    char* data = nullptr;
    std::size_t used = 0;

    template <class T> T* take(std::ptrdiff_t count) {
        std::size_t const at = used;
        used += (std::size_t(count) * sizeof(T) + 127) / 64 * 64;
        return data ? reinterpret_cast<T*>(data + at) : nullptr;
    }
    bool allocate() {
        // 64 bytes more than needed, to align the start to a cache line
        block = std::malloc(used + 64);
        if (!block) return false;
        data = static_cast<char*>(block) + (64 - reinterpret_cast<std::uintptr_t>(block) % 64);
        used = 0;
        return true;
    }
    ~Arena() { std::free(block); }

  private:
    void* block = nullptr;
};

struct Plan {
    std::ptrdiff_t batch, steps;
    std::int32_t *order, *length, *position;  // (B) rows by length; (B) real steps; (B, N) where they are, or null

    void reserve(Arena& arena, std::ptrdiff_t batch_, std::ptrdiff_t steps_, bool masked) {
        batch = batch_;
        steps = steps_;
        order = arena.take<std::int32_t>(batch);
        length = arena.take<std::int32_t>(batch);
        position = masked ? arena.take<std::int32_t>(batch * steps) : nullptr;
    }

    void fill(std::uint8_t const* mask) {
        for (std::ptrdiff_t b = 0; b < batch; ++b) {
            length[b] = mask ? 0 : std::int32_t(steps);
            for (std::ptrdiff_t n = 0; mask && n < steps; ++n) {
                if (mask[b * steps + n]) position[b * steps + length[b]++] = std::int32_t(n);
            }
            std::ptrdiff_t at = b;  // insertion keeps equal lengths in the batch's order
            for (; mask && at > 0 && length[order[at - 1]] < length[b]; --at) order[at] = order[at - 1];
            order[at] = std::int32_t(b);
        }
    }

    SYNV_INLINE std::ptrdiff_t where(std::ptrdiff_t row, std::ptrdiff_t s) const {
        return position ? position[row * steps + s] : s;
    }
};

// Rows of one thread that march together, longest first.
struct Block {
    Plan const* plan;
    int rows;
    std::ptrdiff_t row[BLOCK_ROWS], length[BLOCK_ROWS];

    int running(std::ptrdiff_t s) const {
        int n = rows;
        while (n > 0 && length[n - 1] <= s) --n;
        return n;
    }
    int chunk_steps() const { return CHUNK_ENTRIES / rows; }
};

struct Chunk {
    std::ptrdiff_t first;
    int steps;
    int offset[CHUNK_ENTRIES + 1];  // entries of step first + i are offset[i] ... offset[i + 1]

    Chunk(Block const& block, std::ptrdiff_t first_) : first(first_), steps(0) {
        offset[0] = 0;
        while (steps < block.chunk_steps()) {
            int const running = block.running(first + steps);
            if (running == 0) break;
            offset[steps + 1] = offset[steps] + running;
            ++steps;
        }
    }
    int entries() const { return offset[steps]; }

    // Calls body(entry, row, position in the sequence, step) for all entries, row by row: so memory is read in order.
    template <class Body> SYNV_INLINE void each(Block const& block, Body const& body) const {
        for (int r = 0; r < block.rows; ++r) {
            for (int i = 0; i < steps && r < offset[i + 1] - offset[i]; ++i) {
                body(offset[i] + r, block.row[r], block.plan->where(block.row[r], first + i), first + i);
            }
        }
    }
};

// Calls body(block) for the blocks of group `group` of `groups`: rows order[group], order[group + groups], ...
template <class Body> void for_blocks(Plan const& plan, std::ptrdiff_t group, std::ptrdiff_t groups, Body const& body) {
    std::ptrdiff_t const mine = ceil_div(plan.batch - group, groups);
    std::ptrdiff_t const blocks = ceil_div(mine, BLOCK_ROWS);
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
        std::ptrdiff_t const begin = mine * b / blocks, end = mine * (b + 1) / blocks;
        Block block;
        block.plan = &plan;
        block.rows = int(end - begin);
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            block.row[i - begin] = plan.order[group + i * groups];
            block.length[i - begin] = plan.length[block.row[i - begin]];
        }
        body(block);
    }
}

// Groups of rows, one for each thread that has something to do; one even if the batch is empty.
inline int group_count(int threads, std::ptrdiff_t batch) {
    std::ptrdiff_t const groups = threads < batch ? threads : batch;
    return groups > 1 ? int(groups) : 1;
}

// Runs body(group) for all groups on up to `groups` threads; right with any number of them.
template <class Body> void parallel_groups(int groups, Body const& body) {
#ifdef _OPENMP
#pragma omp parallel for num_threads(groups) schedule(static, 1) if (groups > 1)
#endif
    for (int group = 0; group < groups; ++group) body(group);
}

// With few rows and many threads the rows march together on one thread, while the others do the matrix products of
// the chunk before or behind.
inline bool as_team(int threads, std::ptrdiff_t batch) {
    return batch > 0 && batch <= BLOCK_ROWS && 2 * batch <= threads;
}

// Piece `part` of `parts` of 0 ... count, cut at multiples of `unit`.
struct Range {
    std::ptrdiff_t begin, end;
    Range(std::ptrdiff_t count, std::ptrdiff_t unit, int part, int parts) {
        std::ptrdiff_t const units = ceil_div(count, unit);
        begin = units * part / parts * unit;
        end = units * (part + 1) / parts * unit;
        if (end > count) end = count;
    }
    std::ptrdiff_t size() const { return end > begin ? end - begin : 0; }
};

// Copies `count` values and fills up to `count_padded` with zeros. Rows are short: a call of memcpy costs more.
template <class T> SYNV_INLINE void copy(T const* from, T* to, std::ptrdiff_t count, std::ptrdiff_t count_padded) {
    std::ptrdiff_t i = 0;
    for (; i + WIDTH<T> <= count; i += WIDTH<T>) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = from[i];
    for (; i < count_padded; ++i) to[i] = T(0);
}

template <class T> void zero_padding(Plan const& plan, std::uint8_t const* mask, Sequence<T> to, std::ptrdiff_t width) {
    if (!mask || !to.data) return;
    for (std::ptrdiff_t b = 0; b < plan.batch; ++b) {
        for (std::ptrdiff_t n = 0; n < plan.steps; ++n) {
            if (mask[b * plan.steps + n]) continue;
            std::memset(to.data + b * to.row + n * to.step, 0, std::size_t(width) * sizeof(T));
        }
    }
}

}  // namespace SYNV_ISA
}  // namespace synv
