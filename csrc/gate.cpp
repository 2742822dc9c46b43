// Element by element: dropout, and the gate softplus(a) tanh(b) with dropout after it. The backward computes both anew.
#include "activation.hpp"
#include "rows.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

// log(1 + t) = 2 z (1 + z^2/3 + z^4/5 + ...) with z = t / (t + 2), at most 1/3 for t in [0, 1].
template <class T> constexpr int LOG_TERMS = sizeof(T) == 4 ? 8 : 17;

template <class T> SYNV_INLINE Vec<T> log_of_one_plus(Vec<T> t) {
    Vec<T> const z = t / (t + splat(T(2))), square = z * z;
    Vec<T> sum = splat(T(2.0 / (2 * LOG_TERMS<T> - 1)));
    SYNV_UNROLL
    for (int k = LOG_TERMS<T> - 2; k >= 0; --k) sum = fma<T>(sum, square, splat(T(2.0 / (2 * k + 1))));
    return sum * z;
}

// softplus and its derivative; beyond 20, as in torch, the identity.
template <class T> struct Softplus {
    Vec<T> value, slope;
    explicit SYNV_INLINE Softplus(Vec<T> a) {
        Vec<T> const zero = splat(T(0)), one = splat(T(1)), limit = splat(T(20));
        ExpParts<T> const e = exp_parts<T>(select_less<T>(zero, a, zero - a, a));
        Vec<T> const t = fma<T>(e.scale, e.part, e.scale);  // exp(-|a|)
        Vec<T> const smooth = select_less<T>(a, zero, zero, a) + log_of_one_plus<T>(t);
        value = select_less<T>(limit, a, a, smooth);
        slope = select_less<T>(limit, a, one, select_less<T>(a, zero, t, one) / (one + t));
    }
};

template <class T, class Body> bool over_elements(Elements const& of, int arrays, Body const& body) {
    Factors<T> const factors(of.dropout);
    return over_pieces<T>(of.count, 1, arrays, of.threads, [&](Piece const& piece, Cutter& cutter) {
        T* const room = cutter.array<T>(Factors<T>::room(piece.rows));
        T const* const m = factors.active ? factors.make(piece.first, piece.rows, room) : nullptr;
        each_vector<T>(piece.rows, [&](std::ptrdiff_t i, std::ptrdiff_t n) {
            body(piece.first + i, n, m ? load_first(m + i, n) : splat(T(1)));
        });
    });
}

template <class T> bool drop(DropoutArgs<T> const& args) {
    return over_elements<T>(args.elements, 1, [&](std::ptrdiff_t i, std::ptrdiff_t n, Vec<T> m) {
        store_first(args.out + i, load_first(args.x + i, n) * m, n);
    });
}

template <class T> bool forward(GateArgs<T> const& args) {
    return over_elements<T>(args.elements, 1, [&](std::ptrdiff_t i, std::ptrdiff_t n, Vec<T> m) {
        Softplus<T> const magnitude(load_first(args.a + i, n));
        store_first(args.out + i, magnitude.value * hyperbolic_tangent<T>(load_first(args.b + i, n)) * m, n);
    });
}

template <class T> bool backward(GateBackwardArgs<T> const& args) {
    return over_elements<T>(args.elements, 1, [&](std::ptrdiff_t i, std::ptrdiff_t n, Vec<T> m) {
        Softplus<T> const magnitude(load_first(args.a + i, n));
        Vec<T> const sign = hyperbolic_tangent<T>(load_first(args.b + i, n)), g = load_first(args.grad + i, n) * m;
        store_first(args.grad_a + i, g * sign * magnitude.slope, n);
        store_first(args.grad_b + i, g * magnitude.value * (splat(T(1)) - sign * sign), n);
    });
}

}  // namespace

bool dropout(DropoutArgs<float> const& args) { return drop(args); }
bool dropout(DropoutArgs<double> const& args) { return drop(args); }
bool gate_forward(GateArgs<float> const& args) { return forward(args); }
bool gate_forward(GateArgs<double> const& args) { return forward(args); }
bool gate_backward(GateBackwardArgs<float> const& args) { return backward(args); }
bool gate_backward(GateBackwardArgs<double> const& args) { return backward(args); }

}  // namespace SYNV_ISA
}  // namespace synv
