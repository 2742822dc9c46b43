// Cuts a long sequence into segments whose sweeps stay in cache, each with as many rows around it as its result needs.
//
// What a carry brings from k rows away is weighted by the product of k sines. Once that product is far below rounding, a
// sweep may start there instead of at the end of the sequence: the result is the same to the last digit. Where the
// product falls too slowly (rotations near a quarter turn carry far), the sequence stays in one piece.
#pragma once

#include <cmath>

#include "workspace.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

// Products of sines below this leave no trace: the rounding of T to the power of more than two.
template <class T> constexpr double NO_TRACE = sizeof(T) == 4 ? 1e-18 : 1e-34;

// One of four sweeps, up, down, up, down. The carry starts with row `start` and goes alone until it reaches the first of
// rotations begin ... end - 1, whose rows are written; a pass that closes ends at the sequence's end and writes that too.
struct Pass {
    std::ptrdiff_t start, begin, end;
    bool closes;
};

struct Segment {
    std::ptrdiff_t first, last;  // rows of the result, first ... last
    Pass pass[4];
    std::ptrdiff_t low, high;    // rows that are held in between, low ... high
};

// The row from which on, going up, a carry into row `row` may start: sines of rotations row, row + 1, ...
template <class T> inline std::ptrdiff_t start_below(T const* rotation, std::ptrdiff_t row, std::ptrdiff_t n) {
    double weight = 1;
    while (row < n - 1 && weight > NO_TRACE<T>) weight *= std::fabs(double(rotation[2 * row++ + 1]));
    return row;
}

// The same going down: sines of rotations row - 1, row - 2, ...
template <class T> inline std::ptrdiff_t start_above(T const* rotation, std::ptrdiff_t row) {
    double weight = 1;
    while (row > 0 && weight > NO_TRACE<T>) weight *= std::fabs(double(rotation[2 * --row + 1]));
    return row;
}

// The four passes for rows first ... last: planned from the last to the first, each delivering what the next reads.
template <class T>
inline Segment plan(T const* r1, T const* r2, std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t n) {
    Segment s;
    s.first = first;
    s.last = last;
    auto const up = [n](T const* r, std::ptrdiff_t low, std::ptrdiff_t high) {  // to finish rows low ... high
        return Pass{start_below(r, high, n), low > 0 ? low - 1 : 0, high, low == 0};
    };
    auto const down = [n](T const* r, std::ptrdiff_t low, std::ptrdiff_t high) {
        return Pass{start_above(r, low), low, high < n - 1 ? high + 1 : n - 1, high == n - 1};
    };
    s.pass[3] = down(r1, first, last);
    s.pass[2] = up(r2, s.pass[3].start, s.pass[3].end);
    s.pass[1] = down(r2, s.pass[2].begin, s.pass[2].start);
    s.pass[0] = up(r1, s.pass[1].start, s.pass[1].end);
    s.low = s.pass[1].start;
    s.high = s.pass[0].end;
    return s;
}

// How a sequence is cut: `count` segments of `rows` rows each, or a single one.
struct Cuts {
    std::ptrdiff_t rows = 0, count = 0, held = 0;  // held: most rows that a segment holds

    // At most so many rows per segment, a multiple of the vector width.
    template <class T> void set(T const* r1, T const* r2, std::ptrdiff_t n, std::ptrdiff_t most) {
        rows = n <= most + most / 2 ? n : most;
        count = (n + rows - 1) / rows;
        held = count == 1 ? n : 0;
        for (std::ptrdiff_t i = 0; i < count && count > 1; ++i) {
            Segment const s = segment(r1, r2, i, n);
            std::ptrdiff_t const size = s.high - s.low + 1;
            if (size > held) held = size;
            if (size <= rows + rows / 2) continue;
            rows = held = n;  // carries go too far for cutting
            count = 1;
        }
    }
    template <class T> Segment segment(T const* r1, T const* r2, std::ptrdiff_t i, std::ptrdiff_t n) const {
        std::ptrdiff_t const first = i * rows, last = first + rows < n ? first + rows - 1 : n - 1;
        return plan(r1, r2, first, last, n);
    }
};

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
