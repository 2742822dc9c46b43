// The register tile all matrix products of the kernels are made of, and the order weights are packed in for it.
//
//     acc[r][c] += sum_k  a(r, k) * w(k, c)        r < R rows, c < C vectors
//
// One load of w serves R rows, one broadcast of a serves C vectors.
#pragma once

#include "vector.hpp"

namespace synv {
namespace SYNV_ISA {

// Rows of the tallest tile: as many accumulators as the register file holds beside w and the broadcast.
#if defined(__AVX512F__)
constexpr int TALL = 8;
#else
constexpr int TALL = 4;
#endif

template <class T, int R, int C> struct Tile {
    Vec<T> acc[R][C];

    SYNV_INLINE void clear() {
        SYNV_UNROLL for (int r = 0; r < R; ++r) {
            SYNV_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = splat(T(0));
        }
    }

    // a(r, k) = a[r * a_row + k * a_k];  w(k, c) = vector at w[k * w_k + c * WIDTH].
    SYNV_INLINE void accumulate(T const* a, std::ptrdiff_t a_row, std::ptrdiff_t a_k, T const* w, std::ptrdiff_t w_k,
                                std::ptrdiff_t depth) {
        for (std::ptrdiff_t k = 0; k < depth; ++k, a += a_k, w += w_k) {
            Vec<T> column[C];
            SYNV_UNROLL for (int c = 0; c < C; ++c) {
                column[c] = load(w + c * WIDTH<T>);
                if (R > 1) SYNV_KEEP(column[c]);
            }
            SYNV_UNROLL for (int r = 0; r < R; ++r) {
                Vec<T> const factor = splat(a[r * a_row]);
                SYNV_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = fma<T>(factor, column[c], acc[r][c]);
            }
        }
    }
};

// Calls body(first row, compile-time R) over `rows` rows: tiles of `TALLEST` rows, then 4, 2 and 1.
template <int R> struct Rows { static constexpr int value = R; };

// Each tile is a function of its own: inlined side by side, they would not keep their sums in registers.
template <int R, class Body> SYNV_SEPARATE void row_tile(std::ptrdiff_t row, Body const& body) { body(row, Rows<R>()); }

template <int TALLEST, class Body> SYNV_INLINE void for_row_tiles(std::ptrdiff_t rows, Body const& body) {
    std::ptrdiff_t row = 0;
    for (; row + TALLEST <= rows; row += TALLEST) row_tile<TALLEST>(row, body);
    if (TALLEST > 4 && row + 4 <= rows) { row_tile<4>(row, body); row += 4; }
    if (TALLEST > 2 && row + 2 <= rows) { row_tile<2>(row, body); row += 2; }
    if (TALLEST > 1 && row < rows) row_tile<1>(row, body);
}

SYNV_INLINE std::ptrdiff_t ceil_div(std::ptrdiff_t a, std::ptrdiff_t b) { return (a + b - 1) / b; }

template <class T> SYNV_INLINE std::ptrdiff_t padded(std::ptrdiff_t n) { return ceil_div(n, WIDTH<T>) * WIDTH<T>; }

// Columns of w in panels of 4 vectors; what is left is one panel of 1 to 3. Tiles of 4 vectors are at most
// half as tall, so that the accumulators fit.
constexpr int PANEL = 4;
template <int C> constexpr int TALLEST_OF = C * TALL <= 3 * TALL ? TALL : TALL / 2;

// Calls body(first vector, compile-time C) over `vectors` vectors of columns.
template <class Body> SYNV_INLINE void for_panels(std::ptrdiff_t vectors, Body const& body) {
    std::ptrdiff_t v = 0;
    for (; v + PANEL <= vectors; v += PANEL) body(v, Rows<PANEL>());
    switch (vectors - v) {
        case 3: body(v, Rows<3>()); break;
        case 2: body(v, Rows<2>()); break;
        case 1: body(v, Rows<1>()); break;
    }
}

// Packs row-major w (depth, columns) into the panels above: panel after panel, in each k by k. The last vector is
// filled up with zeros. `to` holds depth * padded(columns). Row k of the packed matrix is row (k + shift) % depth of w.
template <class T>
void pack_panels(T const* w, std::ptrdiff_t depth, std::ptrdiff_t columns, std::ptrdiff_t shift, T* to) {
    std::ptrdiff_t const vectors = ceil_div(columns, WIDTH<T>);
    for (std::ptrdiff_t v = 0; v < vectors; v += PANEL) {
        std::ptrdiff_t const panel = (vectors - v < PANEL ? vectors - v : PANEL) * WIDTH<T>;
        for (std::ptrdiff_t k = 0; k < depth; ++k) {
            T const* const from = w + (k + shift) % depth * columns;
            for (std::ptrdiff_t column = v * WIDTH<T>; column < v * WIDTH<T> + panel; ++column) {
                *to++ = column < columns ? from[column] : T(0);
            }
        }
    }
}

}  // namespace SYNV_ISA
}  // namespace synv
