// ScaleNorm of a sum, a mixture or sines, and dropout after it: out = m s u / max(|u|, EPSILON) row by row, m the
// factors of dropout. The backward makes u and m again: nothing but the operands is kept.
//
//     n = u / |u|,  g = m grad:   grad u = s / |u| (g - n (n . g)),   grad s = n . g, summed over rows
// where |u| >= EPSILON; below, the length is a constant: grad u = s / EPSILON g.
#include "rows.hpp"
#include "sine.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

// u of one row, unless it is an operand as it stands.
template <class T> void make_row(NormArgs<T> const& args, T const* x, T const* other, T* u) {
    Vec<T> const zeta = splat(args.zeta), rest = splat(T(1) - args.zeta);
    std::ptrdiff_t const features = args.features;
    if (args.source == NormSource::MIXED) {
        each_vector<T>(features, [&](std::ptrdiff_t i, std::ptrdiff_t n) {
            Vec<T> const real = load_first(other + i, n), imaginary = load_first(other + features + i, n);
            store_first(u + i, load_first(x + i, n) + fma<T>(zeta, real, rest * imaginary), n);
        });
        return;
    }
    each_vector<T>(args.joined, [&](std::ptrdiff_t i, std::ptrdiff_t n) {
        store_first(u + i, load_first(x + i, n) + load_first(other + i, n), n);
    });
    for (std::ptrdiff_t i = args.joined; i < features; ++i) u[i] = x[i];
}

// u of a piece, and of sines the cosines.
template <class T> struct Rows {
    T const *u, *cosine = nullptr;

    Rows(NormArgs<T> const& args, Piece const& piece, Cutter& cutter) {
        std::ptrdiff_t const room = Factors<T>::room(rows_of_piece(args.features) * args.features);
        T* const made = cutter.array<T>(room);
        T* const cosines = cutter.array<T>(room);
        T const* const x = args.x + piece.first * args.features;
        u = made;
        if (args.source == NormSource::ALONE) {
            u = x;
        } else if (args.source == NormSource::SINE) {
            sines(x, piece.rows * args.features, made, cosines);
            cosine = cosines;
        } else {
            std::ptrdiff_t const width = args.source == NormSource::MIXED ? 2 * args.features : args.joined;
            for (std::ptrdiff_t r = 0; r < piece.rows; ++r)
                make_row(args, x + r * args.features, args.other + (piece.first + r) * width, made + r * args.features);
        }
    }
};

constexpr int ARRAYS = 4;  // u, cosines, factors, gradient

template <class T> SYNV_INLINE void scaled_row(T const* u, T const* m, T factor, std::ptrdiff_t features, T* out) {
    each_vector<T>(features, [&](std::ptrdiff_t i, std::ptrdiff_t n) {
        Vec<T> const v = load_first(u + i, n) * splat(factor);
        store_first(out + i, m ? v * load_first(m + i, n) : v, n);
    });
}

template <class T> bool forward(NormArgs<T> const& args) {
    Factors<T> const factors(args.dropout);
    std::ptrdiff_t const features = args.features;
    return over_pieces<T>(args.rows, features, ARRAYS, args.threads, [&](Piece const& piece, Cutter& cutter) {
        Rows<T> const rows(args, piece, cutter);
        T* const room = cutter.array<T>(Factors<T>::room(piece.rows * features));
        T const* const m = factors.active ? factors.make(piece.first * features, piece.rows * features, room) : nullptr;
        for (std::ptrdiff_t r = 0; r < piece.rows; ++r) {
            T const* const u = rows.u + r * features;
            T const factor = args.scale / length_of(dot(u, u, features));
            scaled_row(u, m ? m + r * features : nullptr, factor, features, args.out + (piece.first + r) * features);
        }
    });
}

// Gradient of u in one row from g, in place.
template <class T> SYNV_INLINE T backward_row(T const* u, T scale, std::ptrdiff_t features, T* g) {
    T const squares = dot(u, u, features), along = dot(u, g, features);
    T const length = length_of(squares), factor = scale / length;
    // below EPSILON the length is a constant; written so that NaN goes the other way
    T const back = root(squares) < T(EPSILON) ? T(0) : factor * (along / length) / length;
    each_vector<T>(features, [&](std::ptrdiff_t i, std::ptrdiff_t n) {
        store_first(g + i, splat(factor) * load_first(g + i, n) - splat(back) * load_first(u + i, n), n);
    });
    return along / length;
}

// From the gradient of u, those of a mixture's other operand; returns that of zeta.
template <class T> SYNV_INLINE T backward_mixture(NormBackwardArgs<T> const& args, T const* g, std::ptrdiff_t row) {
    std::ptrdiff_t const features = args.norm.features;
    T const* const other = args.norm.other + 2 * row * features;
    T* const grad = args.grad_other + 2 * row * features;
    Vec<T> const zeta = splat(args.norm.zeta), rest = splat(T(1) - args.norm.zeta);
    Vec<T> sum = splat(T(0));
    each_vector<T>(features, [&](std::ptrdiff_t i, std::ptrdiff_t n) {
        Vec<T> const v = load_first(g + i, n);
        sum = fma<T>(v, load_first(other + i, n) - load_first(other + features + i, n), sum);
        store_first(grad + i, zeta * v, n);
        store_first(grad + features + i, rest * v, n);
    });
    return sum_of_lanes<T>(sum);
}

// Working memory of the caller: two sums per piece.
inline Workspace& sums_workspace() {
    static thread_local Workspace sums;
    return sums;
}

template <class T> bool backward(NormBackwardArgs<T> const& args) {
    NormArgs<T> const& norm = args.norm;
    Factors<T> const factors(norm.dropout);
    std::ptrdiff_t const features = norm.features, pieces = piece_count(norm.rows, features);
    double* const sums = reinterpret_cast<double*>(sums_workspace().ask(std::size_t(2 * pieces + 2) * sizeof(double)));
    if (!sums) return false;
    bool const done = over_pieces<T>(norm.rows, features, ARRAYS, norm.threads, [&](Piece const& piece, Cutter& cutter) {
        Rows<T> const rows(norm, piece, cutter);
        T* const room = cutter.array<T>(Factors<T>::room(piece.rows * features));
        T* const g = cutter.array<T>(Factors<T>::room(piece.rows * features));
        std::ptrdiff_t const begin = piece.first * features, count = piece.rows * features;
        T const* const m = factors.active ? factors.make(begin, count, room) : nullptr;
        for (std::ptrdiff_t r = 0; r < piece.rows; ++r)
            scaled_row(args.grad + begin + r * features, m ? m + r * features : nullptr, T(1), features, g + r * features);
        double scale = 0, zeta = 0;
        for (std::ptrdiff_t r = 0; r < piece.rows; ++r) {
            scale += double(backward_row(rows.u + r * features, norm.scale, features, g + r * features));
            if (args.grad_other) zeta += double(backward_mixture(args, g + r * features, piece.first + r));
        }
        scaled_row(g, rows.cosine, T(1), count, args.grad_x + begin);
        sums[2 * piece.number] = scale;
        sums[2 * piece.number + 1] = zeta;
    });
    double scale = 0, zeta = 0;
    for (std::ptrdiff_t piece = 0; done && piece < pieces; ++piece) {
        scale += sums[2 * piece];
        zeta += sums[2 * piece + 1];
    }
    *args.grad_scale = T(scale);
    *args.grad_zeta = T(zeta);
    sums_workspace().settle();
    return done;
}

}  // namespace

bool norm_forward(NormArgs<float> const& args) { return forward(args); }
bool norm_forward(NormArgs<double> const& args) { return forward(args); }
bool norm_backward(NormBackwardArgs<float> const& args) { return backward(args); }
bool norm_backward(NormBackwardArgs<double> const& args) { return backward(args); }

}  // namespace SYNV_ISA
}  // namespace synv
