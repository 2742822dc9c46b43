// Vectorised exp(x) - 1, sigmoid and tanh: a few units in the last place, NaN in gives NaN out.
#pragma once

#include "vector.hpp"

namespace synv {
namespace SYNV_ISA {

// Constants of the argument reduction x = k ln 2 + r and the coefficients 1/n! of exp(r) - 1.
template <class T> struct ExpConstants;

template <> struct ExpConstants<float> {
    static constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
    static constexpr float LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
    static constexpr float LIMIT = 87.0f;  // exp(+-LIMIT) is a normal number
    static constexpr int BIAS = 127, MANTISSA = 23, TERMS = 7;
};
template <> struct ExpConstants<double> {
    static constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double LN2_HIGH = 0.693147180369123816490, LN2_LOW = 1.90821492927058770002e-10;
    static constexpr double LIMIT = 708.0;
    static constexpr int BIAS = 1023, MANTISSA = 52, TERMS = 13;
};

constexpr double factorial(int n) { return n <= 1 ? 1.0 : n * factorial(n - 1); }

// exp(r) - 1 = r (1 + r/2! + r^2/3! + ...) for |r| <= ln(2)/2, by Horner from term N down to 1.
template <class T, int N, int LAST> struct Horner {
    static SYNV_INLINE Vec<T> eval(Vec<T> r) {
        return fma<T>(Horner<T, N + 1, LAST>::eval(r), r, splat(T(1.0 / factorial(N))));
    }
};
template <class T, int LAST> struct Horner<T, LAST, LAST> {
    static SYNV_INLINE Vec<T> eval(Vec<T>) { return splat(T(1.0 / factorial(LAST))); }
};

// exp(x) = scale * (part + 1), where part = exp(r) - 1 keeps full relative precision around x = 0.
template <class T> struct ExpParts {
    Vec<T> scale, part;
};

template <class T> SYNV_INLINE ExpParts<T> exp_parts(Vec<T> x) {
    using K = ExpConstants<T>;
    // Both comparisons are false for NaN, which therefore passes through.
    x = select_less<T>(x, splat(-K::LIMIT), splat(-K::LIMIT), x);
    x = select_less<T>(splat(K::LIMIT), x, splat(K::LIMIT), x);
    Vec<T> const shifted = fma<T>(x, splat(T(1.44269504088896340736)), splat(K::ROUND));
    Vec<T> const k = shifted - splat(K::ROUND);
    Vec<T> r = fma<T>(k, splat(-K::LN2_HIGH), x);
    r = fma<T>(k, splat(-K::LN2_LOW), r);
    // The low bits of `shifted` hold k (the bits of ROUND above them are shifted out).
    Vec<T> const scale = from_bits<T>(shift_left<T>(add<T>(bits<T>(shifted), K::BIAS), K::MANTISSA));
    return {scale, Horner<T, 1, K::TERMS>::eval(r) * r};
}

template <class T> SYNV_INLINE Vec<T> sigmoid(Vec<T> x) {
    Vec<T> const one = splat(T(1));
    ExpParts<T> const e = exp_parts<T>(splat(T(0)) - x);
    return one / (one + fma<T>(e.scale, e.part, e.scale));
}

// tanh(x) = t / (t + 2) with t = exp(2x) - 1, exact to rounding around 0.
template <class T> SYNV_INLINE Vec<T> hyperbolic_tangent(Vec<T> x) {
    // Beyond 20 (float: 9.1) tanh is 1 to rounding; the bound keeps t / (t + 2) finite.
    Vec<T> const bound = splat(T(20));
    Vec<T> y = select_less<T>(bound, x, bound, x);
    y = select_less<T>(y, splat(T(0)) - bound, splat(T(0)) - bound, y);
    ExpParts<T> const e = exp_parts<T>(y + y);
    Vec<T> const t = fma<T>(e.scale, e.part, e.scale - splat(T(1)));
    return t / (t + splat(T(2)));
}

}  // namespace SYNV_ISA
}  // namespace synv
