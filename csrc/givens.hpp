// Sweeps of real rotations over the rows of a signal: what every chain operator is made of.
//
// A rotation is G = Z(beta) R(gamma) Z(alpha) with R real. Let the carry of a chain travel in a frame that turns with
// the phases it meets; then the whole chain is  E_out R E_in  with R a chain of real rotations and E_in, E_out one
// phase per row (docs/performance.md). A sweep is one such R, with a phase multiplied on as rows are read and written.
#pragma once

#include "vector.hpp"

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SYNV_SHUFFLE 1
#endif
#endif

namespace synv {
namespace SYNV_ISA {
namespace {

// Vectors side by side in a tile of features: as many as the registers hold.
#if defined(__AVX512F__)
constexpr int TILE_VECTORS = 2;
#else
constexpr int TILE_VECTORS = 1;
#endif

// Where the rows of a tile lie: element (row, plane, k) is data[(row - origin) * step + plane * gap + k].
template <class T> struct Rows {
    T* data;
    std::ptrdiff_t step, gap, origin;
};

// Sums over features that the backward pass collects, one per row or rotation.
template <class T> struct Sums {
    T* inputs;    // Im(conj(g) x) of rows as they are read
    T* outputs;   // the same of rows as they are written, or null
    T* rotation;  // g_bottom . x_top - g_top . x_bottom of each rotation
    T* carries;   // Im(conj(g) x) of the carry at each row that is a multiple of the vector width
    T sign;       // with which they are added
};

// A sweep of S signals: the signal alone, or signal and gradient.
template <class T, int S> struct SweepArgs {
    std::ptrdiff_t features;  // of this tile
    Rows<T const> from[S];
    Rows<T> to[S];                             // data null: not wanted
    T const *phase_in, *phase_out, *rotation;  // (rows, 2): cosine and sine; phases may be null
    Sums<T> sums;                              // used with two signals only
};

#if defined(SYNV_VECTOR_EXTENSIONS) && defined(SYNV_SHUFFLE)
template <int... I> struct Indices {};
template <int N, int... I> struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I> struct MakeIndices<0, I...> { using type = Indices<I...>; };

// Within each block of SPAN lanes: the first half of the result holds sums of a, the second sums of b.
template <class T, int SPAN, int... I> SYNV_INLINE Vec<T> fold(Vec<T> a, Vec<T> b, Indices<I...>) {
    constexpr int W = WIDTH<T>, HALF = SPAN / 2;
#define SYNV_LANE(i) ((i) / SPAN * SPAN + (i) % HALF + ((i) % SPAN < HALF ? 0 : W))
    return __builtin_shufflevector(a, b, SYNV_LANE(I)...) + __builtin_shufflevector(a, b, (SYNV_LANE(I) + HALF)...);
#undef SYNV_LANE
}
template <class T, int SPAN> SYNV_INLINE void fold_all(Vec<T>* v) {
    if constexpr (SPAN >= 2) {
        SYNV_UNROLL for (int i = 0; i < SPAN / 2; ++i)
            v[i] = fold<T, SPAN>(v[i], v[i + SPAN / 2], typename MakeIndices<WIDTH<T>>::type{});
        fold_all<T, SPAN / 2>(v);
    }
}
// Lane i of the result is the sum of the lanes of rows[i].
template <class T> SYNV_INLINE Vec<T> row_sums(Vec<T> const* rows) {
    Vec<T> v[WIDTH<T>];
    SYNV_UNROLL for (int i = 0; i < WIDTH<T>; ++i) v[i] = rows[i];
    fold_all<T, WIDTH<T>>(v);
    return v[0];
}
#else
template <class T> SYNV_INLINE Vec<T> row_sums(Vec<T> const* rows) {
    Vec<T> v = splat(T(0));
    for (int i = 0; i < WIDTH<T>; ++i) v[i] = horizontal_sum<T>(rows[i]);
    return v;
}
#endif

template <class T> SYNV_INLINE void add_to(T* to, Vec<T> v, T sign) { store(to, load(to) + splat(sign) * v); }

// Rows of a tensor lie far apart, so the processor does not foresee the next ones: it is told, this many rows ahead.
constexpr std::ptrdiff_t AHEAD = 16;

template <bool WRITE> SYNV_INLINE void ask_for(void const* line) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(line, WRITE ? 1 : 0, 3);
#else
    (void)line;
#endif
}

template <class T, int K, bool WRITE, class R> SYNV_INLINE void foresee(R const& rows, std::ptrdiff_t i) {
    T const* at = rows.data + (i - rows.origin) * rows.step;  // beyond the last row the address is asked for in vain, not used
    constexpr int LINE = 64 / int(sizeof(T)), WIDE = K * WIDTH<T>;
    SYNV_UNROLL for (int k = 0; k < WIDE; k += LINE) {
        ask_for<WRITE>(at + k);
        ask_for<WRITE>(at + rows.gap + k);
    }
}

// One row of a tile: real and imaginary part, K vectors each.
template <class T, int K> struct Row {
    Vec<T> re[K], im[K];
};

template <class T, int K, bool TAIL>
SYNV_INLINE Row<T, K> read(Rows<T const> const& rows, std::ptrdiff_t i, std::ptrdiff_t features) {
    T const* at = rows.data + (i - rows.origin) * rows.step;
    Row<T, K> row;
    SYNV_UNROLL for (int k = 0; k < K; ++k) {
        row.re[k] = TAIL ? load_first(at + k * WIDTH<T>, features - k * WIDTH<T>) : load(at + k * WIDTH<T>);
        row.im[k] = TAIL ? load_first(at + rows.gap + k * WIDTH<T>, features - k * WIDTH<T>)
                         : load(at + rows.gap + k * WIDTH<T>);
    }
    return row;
}

template <class T, int K, bool TAIL>
SYNV_INLINE void write(Rows<T> const& rows, std::ptrdiff_t i, std::ptrdiff_t features, Row<T, K> const& row) {
    T* at = rows.data + (i - rows.origin) * rows.step;
    SYNV_UNROLL for (int k = 0; k < K; ++k) {
        if (TAIL) {
            store_first(at + k * WIDTH<T>, row.re[k], features - k * WIDTH<T>);
            store_first(at + rows.gap + k * WIDTH<T>, row.im[k], features - k * WIDTH<T>);
        } else {
            store(at + k * WIDTH<T>, row.re[k]);
            store(at + rows.gap + k * WIDTH<T>, row.im[k]);
        }
    }
}

// Multiply by the phase of row i; SIGN -1: by its conjugate, 0: not at all.
template <class T, int K, int SIGN> SYNV_INLINE void turn(Row<T, K>& row, T const* phase, std::ptrdiff_t i) {
    if constexpr (SIGN != 0) {
        Vec<T> const c = splat(phase[2 * i]), s = splat(SIGN * phase[2 * i + 1]);
        SYNV_UNROLL for (int k = 0; k < K; ++k) {
            Vec<T> const re = row.re[k], im = row.im[k];
            row.re[k] = c * re - s * im;
            row.im[k] = c * im + s * re;
        }
    }
}

// Im(conj(g) x), not yet summed over lanes.
template <class T, int K> SYNV_INLINE Vec<T> imaginary(Row<T, K> const& g, Row<T, K> const& x) {
    Vec<T> sum = g.re[0] * x.im[0] - g.im[0] * x.re[0];
    SYNV_UNROLL for (int k = 1; k < K; ++k) sum += g.re[k] * x.im[k] - g.im[k] * x.re[k];
    return sum;
}
// g1 . x1 - g2 . x2 over both planes.
template <class T, int K>
SYNV_INLINE Vec<T> cross(Row<T, K> const& g1, Row<T, K> const& x1, Row<T, K> const& g2, Row<T, K> const& x2) {
    Vec<T> sum = g1.re[0] * x1.re[0] - g2.re[0] * x2.re[0];
    sum += g1.im[0] * x1.im[0] - g2.im[0] * x2.im[0];
    SYNV_UNROLL for (int k = 1; k < K; ++k) {
        sum += g1.re[k] * x1.re[k] - g2.re[k] * x2.re[k];
        sum += g1.im[k] * x1.im[k] - g2.im[k] * x2.im[k];
    }
    return sum;
}

// carry, row -> carry, finished row; the same whichever of the two is the upper one, but for the sign of s.
template <class T, int K> SYNV_INLINE Row<T, K> rotate(Row<T, K>& carry, Row<T, K> const& row, Vec<T> c, Vec<T> s) {
    Row<T, K> out;
    SYNV_UNROLL for (int k = 0; k < K; ++k) {
        Vec<T> const re = carry.re[k], im = carry.im[k];
        out.re[k] = s * row.re[k] + c * re;
        out.im[k] = s * row.im[k] + c * im;
        carry.re[k] = c * row.re[k] - s * re;
        carry.im[k] = c * row.im[k] - s * im;
    }
    return out;
}

// How a sweep goes: DOWN from row 0 or up from the last one; SIGN of the sine; signs of the phases at reading and
// writing; whether rows are read from and written to a tensor or the scratch, and end there within a vector.
enum class Place { SCRATCH, TENSOR, TENSOR_TAIL };

template <bool DOWN_, int SIGN_, int IN_, int OUT_, Place FROM_, Place TO_> struct Way {
    static constexpr bool DOWN = DOWN_;
    static constexpr int SIGN = SIGN_, IN = IN_, OUT = OUT_;
    static constexpr bool FAR_IN = FROM_ != Place::SCRATCH, TAIL_IN = FROM_ == Place::TENSOR_TAIL;
    static constexpr bool FAR_OUT = TO_ != Place::SCRATCH, TAIL_OUT = TO_ == Place::TENSOR_TAIL;
    static constexpr std::ptrdiff_t AHEAD = DOWN_ ? SYNV_ISA::AHEAD : -SYNV_ISA::AHEAD;
};

// The carries of a sweep, one per signal.
template <class T, int K, int S> struct Carries {
    Row<T, K> of[S];
};

// Start a sweep at a row.
template <class T, int K, class W, int S>
SYNV_INLINE Carries<T, K, S> start(SweepArgs<T, S> const& args, std::ptrdiff_t i) {
    Carries<T, K, S> carries;
    for (int s = 0; s < S; ++s) {
        carries.of[s] = read<T, K, W::TAIL_IN>(args.from[s], i, args.features);
        turn<T, K, W::IN>(carries.of[s], args.phase_in, i);
    }
    return carries;
}

// End it: the carry is the last row.
template <class T, int K, class W, int S>
SYNV_INLINE void end(SweepArgs<T, S> const& args, std::ptrdiff_t i, Carries<T, K, S> carries) {
    for (int s = 0; s < S; ++s) {
        if (!args.to[s].data) continue;
        turn<T, K, W::OUT>(carries.of[s], args.phase_out, i);
        write<T, K, W::TAIL_OUT>(args.to[s], i, args.features, carries.of[s]);
    }
}

// The carry alone through rotations begin ... end - 1, from begin on if DOWN, else from end - 1 on.
template <class T, int K, class W, int S>
SYNV_SEPARATE void carry_through(SweepArgs<T, S> const& args, Carries<T, K, S>& carries, std::ptrdiff_t begin,
                                 std::ptrdiff_t end) {
    Carries<T, K, S> carry = carries;
    for (std::ptrdiff_t t = begin; t < end; ++t) {
        std::ptrdiff_t const j = W::DOWN ? t : begin + end - 1 - t, source = W::DOWN ? j + 1 : j;
        Vec<T> const c = splat(args.rotation[2 * j]), s = splat(W::SIGN * args.rotation[2 * j + 1]);
        for (int i = 0; i < S; ++i) {
            Row<T, K> row = read<T, K, W::TAIL_IN>(args.from[i], source, args.features);
            turn<T, K, W::IN>(row, args.phase_in, source);
            rotate<T, K>(carry.of[i], row, c, s);
        }
    }
    carries = carry;
}

// Rotations begin ... end - 1 of all signals, in the order of carry_through; finished rows are written.
template <class T, int K, class W, int S>
SYNV_SEPARATE void sweep(SweepArgs<T, S> const& args, Carries<T, K, S>& carries, std::ptrdiff_t begin,
                         std::ptrdiff_t end) {
    Carries<T, K, S> carry = carries;
    for (std::ptrdiff_t t = begin; t < end; ++t) {
        std::ptrdiff_t const j = W::DOWN ? t : begin + end - 1 - t;
        std::ptrdiff_t const source = W::DOWN ? j + 1 : j, target = W::DOWN ? j : j + 1;
        Vec<T> const c = splat(args.rotation[2 * j]), s = splat(W::SIGN * args.rotation[2 * j + 1]);
        for (int i = 0; i < S; ++i) {
            if (W::FAR_IN) foresee<T, K, false>(args.from[i], source + W::AHEAD);
            if (W::FAR_OUT && args.to[i].data) foresee<T, K, true>(args.to[i], target + W::AHEAD);
            Row<T, K> row = read<T, K, W::TAIL_IN>(args.from[i], source, args.features);
            turn<T, K, W::IN>(row, args.phase_in, source);
            Row<T, K> out = rotate<T, K>(carry.of[i], row, c, s);
            if (!args.to[i].data) continue;
            turn<T, K, W::OUT>(out, args.phase_out, target);
            write<T, K, W::TAIL_OUT>(args.to[i], target, args.features, out);
        }
    }
    carries = carry;
}

// The same of signal and gradient with the sums, in blocks of as many rotations as a vector has lanes; begin is a
// multiple of that. OUTPUTS: with the sums of the rows written.
template <class T, int K, class W, bool OUTPUTS>
SYNV_SEPARATE void sweep_and_sum(SweepArgs<T, 2> const& args, Carries<T, K, 2>& carries, std::ptrdiff_t begin_all,
                                 std::ptrdiff_t end_all) {
    constexpr int LANES = WIDTH<T>;
    Sums<T> const& sums = args.sums;
    Row<T, K> x = carries.of[0], g = carries.of[1];
    std::ptrdiff_t const blocks = (end_all - begin_all + LANES - 1) / LANES;
    for (std::ptrdiff_t block = 0; block < blocks; ++block) {
        std::ptrdiff_t const begin = begin_all + (W::DOWN ? block : blocks - 1 - block) * LANES;
        int const count = int(end_all - begin < LANES ? end_all - begin : LANES);
        Vec<T> inputs[LANES], outputs[LANES], rotation[LANES];
        if (count < LANES) {
            for (int i = 0; i < LANES; ++i) inputs[i] = outputs[i] = rotation[i] = splat(T(0));
        }
        if (W::DOWN) sums.carries[begin / LANES] += sums.sign * horizontal_sum<T>(imaginary(g, x));
        for (int t = 0; t < count; ++t) {
            int const i = W::DOWN ? t : count - 1 - t;
            std::ptrdiff_t const j = begin + i, source = W::DOWN ? j + 1 : j, target = W::DOWN ? j : j + 1;
            if (W::FAR_IN) foresee<T, K, false>(args.from[0], source + W::AHEAD);
            if (W::FAR_IN) foresee<T, K, false>(args.from[1], source + W::AHEAD);
            if (W::FAR_OUT) foresee<T, K, true>(args.to[1], target + W::AHEAD);
            Row<T, K> row = read<T, K, W::TAIL_IN>(args.from[0], source, args.features);
            Row<T, K> row_g = read<T, K, W::TAIL_IN>(args.from[1], source, args.features);
            inputs[i] = imaginary(row_g, row);
            turn<T, K, W::IN>(row, args.phase_in, source);
            turn<T, K, W::IN>(row_g, args.phase_in, source);
            rotation[i] = W::DOWN ? cross(row_g, x, g, row) : cross(g, row, row_g, x);
            Vec<T> const c = splat(args.rotation[2 * j]), s = splat(W::SIGN * args.rotation[2 * j + 1]);
            Row<T, K> out = rotate<T, K>(x, row, c, s), out_g = rotate<T, K>(g, row_g, c, s);
            if (OUTPUTS) outputs[i] = imaginary(out_g, out);
            turn<T, K, W::OUT>(out_g, args.phase_out, target);
            write<T, K, W::TAIL_OUT>(args.to[1], target, args.features, out_g);
            if (!args.to[0].data) continue;
            turn<T, K, W::OUT>(out, args.phase_out, target);
            write<T, K, W::TAIL_OUT>(args.to[0], target, args.features, out);
        }
        if (!W::DOWN) sums.carries[begin / LANES] += sums.sign * horizontal_sum<T>(imaginary(g, x));
        add_to(sums.inputs + begin + (W::DOWN ? 1 : 0), row_sums<T>(inputs), sums.sign);
        add_to(sums.rotation + begin, row_sums<T>(rotation), sums.sign);
        if (OUTPUTS) add_to(sums.outputs + begin + (W::DOWN ? 0 : 1), row_sums<T>(outputs), T(1));
    }
    carries.of[0] = x;
    carries.of[1] = g;
}

// Im(conj(g) x) of the carries, which a phase does not change: the sum of the first row read or the last one written.
template <class T, int K> SYNV_INLINE T carry_sum(Carries<T, K, 2> const& carries) {
    return horizontal_sum<T>(imaginary(carries.of[1], carries.of[0]));
}

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
