// Sines and cosines of many angles, written so that the compiler makes vectors of it.
#pragma once

#include <cmath>

#include "vector.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

constexpr double HALF_PI = 1.57079632679489661923;
// pi / 2 in two parts: the first has trailing zero bits, so that up to 2^20 times it is exact
constexpr double HALF_PI_HIGH = 1.57079632673412561417, HALF_PI_LOW = 6.07710050650619224932e-11;

// Sine and cosine on [-pi/4, pi/4] by Taylor polynomials, enough terms for the last digit of T.
template <class T> SYNV_INLINE T small_sine(T x) {
    T const z = x * x;
    if (sizeof(T) == 4)
        return x + x * z * (T(-1.0 / 6) + z * (T(1.0 / 120) + z * (T(-1.0 / 5040) + z * T(1.0 / 362880))));
    T p = T(-1.0 / 1307674368000.0);
    p = p * z + T(1.0 / 6227020800.0);
    p = p * z + T(-1.0 / 39916800.0);
    p = p * z + T(1.0 / 362880.0);
    p = p * z + T(-1.0 / 5040.0);
    p = p * z + T(1.0 / 120.0);
    p = p * z + T(-1.0 / 6.0);
    return x + x * z * p;
}
template <class T> SYNV_INLINE T small_cosine(T x) {
    T const z = x * x;
    if (sizeof(T) == 4)
        return T(1) + z * (T(-0.5) + z * (T(1.0 / 24) + z * (T(-1.0 / 720) + z * T(1.0 / 40320))));
    T p = T(1.0 / 20922789888000.0);
    p = p * z + T(-1.0 / 87178291200.0);
    p = p * z + T(1.0 / 479001600.0);
    p = p * z + T(-1.0 / 3628800.0);
    p = p * z + T(1.0 / 40320.0);
    p = p * z + T(-1.0 / 720.0);
    p = p * z + T(1.0 / 24.0);
    return (T(1) - T(0.5) * z) + z * z * p;
}

// How many angles are turned into cosines and sines at once.
constexpr int CHUNK = 256;

// sine[i] = sin(angle[i]), cosine[i] = cos(angle[i]), for at most CHUNK angles.
template <class T, class Angle>
SYNV_SEPARATE void chunk_of_sines(Angle const* angle, int count, T* sine, T* cosine) {
    constexpr double MAGIC = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
    constexpr double LARGE = 1e6;                 // beyond, the reduction below loses digits
    T rest[CHUNK];
    std::int32_t quadrant[CHUNK];
    int large = 0;
    for (int i = 0; i < count; ++i) {
        double const wide = double(angle[i]), shifted = wide * (1 / HALF_PI) + MAGIC;
        double const turns = shifted - MAGIC;
        std::int64_t bits;
        std::memcpy(&bits, &shifted, sizeof bits);
        quadrant[i] = std::int32_t(bits);
        rest[i] = T((wide - turns * HALF_PI_HIGH) - turns * HALF_PI_LOW);
        large |= !(std::fabs(wide) <= LARGE);
    }
    for (int i = 0; i < count; ++i) {
        T const s = small_sine(rest[i]), c = small_cosine(rest[i]);
        bool const swap = quadrant[i] & 1;
        T const a = swap ? c : s, b = swap ? s : c;
        sine[i] = (quadrant[i] & 2) ? -a : a;
        cosine[i] = ((quadrant[i] + 1) & 2) ? -b : b;
    }
    if (!large) return;
    for (int i = 0; i < count; ++i) {
        sine[i] = T(std::sin(double(angle[i])));
        cosine[i] = T(std::cos(double(angle[i])));
    }
}

// The same of any number of angles.
template <class T> inline void sines(T const* angle, std::ptrdiff_t count, T* sine, T* cosine) {
    for (std::ptrdiff_t i = 0; i < count; i += CHUNK)
        chunk_of_sines(angle + i, int(count - i < CHUNK ? count - i : CHUNK), sine + i, cosine + i);
}

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
