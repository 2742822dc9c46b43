// Means of groups of sines; with `unit`, all groups of a row brought to unit length first:
//     out_k = mean of group k of s / |s|,  s = sin(x).
// grad s_i = (grad_k / size - s_i (sum of grad_k mean_k) / |s|^2) / |s|, the second part only where |s| >= EPSILON.
#include "rows.hpp"
#include "sine.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

template <class T> SYNV_INLINE T mean_of(T const* s, std::ptrdiff_t size) {
    T sum = T(0);
    for (std::ptrdiff_t i = 0; i < size; ++i) sum += s[i];
    return sum / T(size);
}

template <class T> bool forward(MeansArgs<T> const& args) {
    std::ptrdiff_t const features = args.groups * args.size;
    return over_pieces<T>(args.rows, features, 2, args.threads, [&](Piece const& piece, Cutter& cutter) {
        std::ptrdiff_t const count = piece.rows * features;
        T* const sine = cutter.array<T>(count);
        sines(args.x + piece.first * features, count, sine, cutter.array<T>(count));
        T* out = args.out + piece.first * args.groups;
        for (T const* s = sine; s < sine + count; s += features) {
            T const factor = args.unit ? T(1) / length_of(dot(s, s, features)) : T(1);
            for (std::ptrdiff_t k = 0; k < args.groups; ++k) *out++ = factor * mean_of(s + k * args.size, args.size);
        }
    });
}

template <class T> SYNV_INLINE void backward_row(MeansArgs<T> const& args, T const* s, T const* cosine, T const* grad, T* to) {
    T inverse = T(1), back = T(0);
    if (args.unit) {
        T const squares = dot(s, s, args.groups * args.size);
        inverse = T(1) / length_of(squares);
        for (std::ptrdiff_t k = 0; k < args.groups; ++k) back += grad[k] * mean_of(s + k * args.size, args.size);
        back = root(squares) < T(EPSILON) ? T(0) : back * inverse * inverse * inverse;
    }
    inverse /= T(args.size);
    for (std::ptrdiff_t k = 0; k < args.groups; ++k) {
        T const part = grad[k] * inverse;
        for (std::ptrdiff_t i = k * args.size; i < (k + 1) * args.size; ++i) to[i] = (part - s[i] * back) * cosine[i];
    }
}

template <class T> bool backward(MeansBackwardArgs<T> const& all) {
    MeansArgs<T> const& args = all.means;
    std::ptrdiff_t const features = args.groups * args.size;
    return over_pieces<T>(args.rows, features, 2, args.threads, [&](Piece const& piece, Cutter& cutter) {
        std::ptrdiff_t const begin = piece.first * features, count = piece.rows * features;
        T* const sine = cutter.array<T>(count);
        T* const cosine = cutter.array<T>(count);
        sines(args.x + begin, count, sine, cosine);
        T const* grad = all.grad + piece.first * args.groups;
        for (std::ptrdiff_t i = 0; i < count; i += features, grad += args.groups)
            backward_row(args, sine + i, cosine + i, grad, all.grad_x + begin + i);
    });
}

}  // namespace

bool means_forward(MeansArgs<float> const& args) { return forward(args); }
bool means_forward(MeansArgs<double> const& args) { return forward(args); }
bool means_backward(MeansBackwardArgs<float> const& args) { return backward(args); }
bool means_backward(MeansBackwardArgs<double> const& args) { return backward(args); }

}  // namespace SYNV_ISA
}  // namespace synv
