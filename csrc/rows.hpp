// Work on rows of features, in pieces that stay in the first-level cache.
//
// Where the pieces are cut depends on the number of features alone, and sums over rows are added up piece by piece: the
// result is the same to the bit for every number of threads.
#pragma once

#include <math.h>

#include "random.hpp"
#include "workspace.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

// Elements of a piece, if a row is not longer.
constexpr std::ptrdiff_t PIECE = 2048;

// So many elements, some tens of microseconds of work, are worth a thread.
constexpr std::ptrdiff_t THREAD_ELEMENTS = 32768;

// Below this length a row is divided by it instead of its own (EPSILON in synvolution/ops/norm.py).
constexpr double EPSILON = 1e-5;

SYNV_INLINE float root(float x) { return sqrtf(x); }
SYNV_INLINE double root(double x) { return sqrt(x); }

// The length of a row by which it is divided; NaN stays NaN.
template <class T> SYNV_INLINE T length_of(T sum_of_squares) {
    T const length = root(sum_of_squares);
    return length < T(EPSILON) ? T(EPSILON) : length;
}

// Calls body(i, count) for each vector of a row, count lanes of it used.
template <class T, class Body> SYNV_INLINE void each_vector(std::ptrdiff_t features, Body const& body) {
    std::ptrdiff_t i = 0;
    for (; i + WIDTH<T> <= features; i += WIDTH<T>) body(i, std::ptrdiff_t(WIDTH<T>));
    if (i < features) body(i, features - i);
}

// In halves, which takes fewer steps than one lane after the other.
template <class T> SYNV_INLINE T sum_of_lanes(Vec<T> v) {
    T lanes[WIDTH<T>];
    store(lanes, v);
    SYNV_UNROLL
    for (int half = WIDTH<T> / 2; half > 0; half /= 2) {
        SYNV_UNROLL
        for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
}

template <class T> SYNV_INLINE T dot(T const* a, T const* b, std::ptrdiff_t count) {
    Vec<T> sum = splat(T(0));
    each_vector<T>(count, [&](std::ptrdiff_t i, std::ptrdiff_t n) {
        sum = fma<T>(load_first(a + i, n), load_first(b + i, n), sum);
    });
    return sum_of_lanes<T>(sum);
}

struct Piece {
    std::ptrdiff_t number, first, rows;  // its rows are first ... first + rows - 1
};

inline std::ptrdiff_t rows_of_piece(std::ptrdiff_t features) { return features < PIECE ? PIECE / features : 1; }
inline std::ptrdiff_t piece_count(std::ptrdiff_t rows, std::ptrdiff_t features) {
    std::ptrdiff_t const each = rows_of_piece(features);
    return (rows + each - 1) / each;
}

// Working memory of this thread.
inline Workspace& own_workspace() {
    static thread_local Workspace own;
    return own;
}

// Calls body(piece, cutter) for all pieces; from the cutter it may cut `arrays` arrays of T with room for the factors of
// a piece. False if there is not enough memory.
template <class T, class Body>
bool over_pieces(std::ptrdiff_t rows, std::ptrdiff_t features, int arrays, int threads, Body const& body) {
    if (rows <= 0 || features <= 0) return true;
    std::ptrdiff_t const each = rows_of_piece(features), count = piece_count(rows, features);
    std::ptrdiff_t const useful = 1 + rows * features / THREAD_ELEMENTS;
    int const team = int(useful < threads ? useful : threads < 1 ? 1 : threads);
    Cutter measure(nullptr);
    for (int a = 0; a < arrays; ++a) measure.array<T>(Factors<T>::room(each * features));
    std::size_t const bytes = measure.used();
    int failed = 0;
#pragma omp parallel for schedule(dynamic, 16) num_threads(team) if (team > 1)
    for (std::ptrdiff_t number = 0; number < count; ++number) {
        char* const block = own_workspace().ask(bytes);
        if (!block) {
#pragma omp atomic write
            failed = 1;
            continue;
        }
        std::ptrdiff_t const first = number * each;
        Cutter cutter(block);
        body(Piece{number, first, rows - first < each ? rows - first : each}, cutter);
    }
    own_workspace().settle();
    return !failed;
}

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
