// From angles to cosines and sines: the real rotations and the phases of the rows in a chain's turning frame.
//
// upper chain, psi from 0 at the last rotation:   psi(j-1) = psi(j) + (alpha(j) - beta(j)) / 2
//     in(j) = -(alpha(j) + psi(j)),  in(N-1) = 0;   out(j+1) = psi(j) + (alpha(j) + beta(j)) / 2,  out(0) = psi(-1)
// lower chain, psi from 0 at the first rotation:  psi(j+1) = psi(j) - (alpha(j) - beta(j)) / 2
//     in(j+1) = alpha(j) - psi(j),  in(0) = 0;      out(j) = psi(j) - (alpha(j) + beta(j)) / 2,  out(N-1) = psi(N-1)
#pragma once

#include <cmath>

#include "sine.hpp"
#include "workspace.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

// Whole turns taken off, so that a frame's angle stays small and keeps its digits.
inline double without_turns(double angle) {
    double const turns = std::nearbyint(angle / (4 * HALF_PI));
    return (angle - turns * (4 * HALF_PI_HIGH)) - turns * (4 * HALF_PI_LOW);
}

// to[2 i] = cos(angle[i]), to[2 i + 1] = sin(angle[i]).
template <class T> inline void chunk_of_cosines_and_sines(double const* angle, int count, T* to) {
    T sine[CHUNK], cosine[CHUNK];
    chunk_of_sines(angle, count, sine, cosine);
    for (int i = 0; i < count; ++i) {
        to[2 * i] = cosine[i];
        to[2 * i + 1] = sine[i];
    }
}

// The same of any number.
template <class T> inline void cosines_and_sines(double const* angle, std::ptrdiff_t count, T* to, int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && count > 16 * CHUNK)
    for (std::ptrdiff_t i = 0; i < count; i += CHUNK) {
        int const size = int(count - i < CHUNK ? count - i : CHUNK);
        chunk_of_cosines_and_sines(angle + i, size, to + 2 * i);
    }
}

// Real rotations of a chain: cosine and sine of gamma / 2. angles: (count, 3).
template <class T> inline void real_rotations(T const* angles, std::ptrdiff_t count, T* to, int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && count > 16 * CHUNK)
    for (std::ptrdiff_t i = 0; i < count; i += CHUNK) {
        double half[CHUNK];
        int const size = int(count - i < CHUNK ? count - i : CHUNK);
        for (int k = 0; k < size; ++k) half[k] = 0.5 * double(angles[3 * (i + k) + 2]);
        chunk_of_cosines_and_sines(half, size, to + 2 * i);
    }
}

// Adds the phases of the upper chain to in and out (N each, either may be null); angles: (N-1, 3).
template <class T> inline void upper_phases(T const* angles, std::ptrdiff_t n, double* in, double* out) {
    double psi = 0;
    for (std::ptrdiff_t j = n - 2; j >= 0; --j) {
        double const alpha = angles[3 * j], beta = angles[3 * j + 1];
        if (in) in[j] -= alpha + psi;
        if (out) out[j + 1] += psi + 0.5 * (alpha + beta);
        psi += 0.5 * (alpha - beta);
        if (j % CHUNK == 0) psi = without_turns(psi);
    }
    if (out) out[0] += psi;
}

// The same of the lower chain.
template <class T> inline void lower_phases(T const* angles, std::ptrdiff_t n, double* in, double* out) {
    double psi = 0;
    for (std::ptrdiff_t j = 0; j < n - 1; ++j) {
        double const alpha = angles[3 * j], beta = angles[3 * j + 1];
        if (in) in[j + 1] += alpha - psi;
        if (out) out[j] += psi - 0.5 * (alpha + beta);
        psi -= 0.5 * (alpha - beta);
        if (j % CHUNK == 0) psi = without_turns(psi);
    }
    if (out) out[n - 1] += psi;
}

// Sums over features from which the angles' gradients follow (docs/math.md), one per row or rotation.
template <class T> struct ChainSums {
    T const *in, *out;   // Im(conj(g) x) of the rows before and after the chain; out null: zero
    T const* rotations;  // g_bottom . x_top - g_top . x_bottom
    T const* carries;    // Im(conj(g) x) of the carry, summed itself at every WIDTH-th row: rounding does not add up
};

// Gradients (N-1, 3) of the angles of an upper chain. In between, the carry's sum follows from those of the rows, since
// a rotation keeps the total; where it does not mix (sine 0), nothing of one row may get into the other's.
template <class T>
inline void upper_gradients(std::ptrdiff_t n, ChainSums<T> const& sums, T const* cosine_sine, T* grad) {
    T carry = sums.in[n - 1];
    for (std::ptrdiff_t j = n - 2; j >= 0; --j) {
        T next = cosine_sine[2 * j + 1] == T(0) ? sums.in[j] : sums.in[j] + (carry - sums.out[j + 1]);
        if (j % WIDTH<T> == 0) next = sums.carries[j / WIDTH<T>];
        grad[3 * j] = T(0.5) * (sums.in[j] - carry);
        grad[3 * j + 1] = T(0.5) * (next - sums.out[j + 1]);
        grad[3 * j + 2] = T(0.5) * sums.rotations[j];
        carry = next;
    }
}

// The same of a lower chain.
template <class T>
inline void lower_gradients(std::ptrdiff_t n, ChainSums<T> const& sums, T const* cosine_sine, T* grad) {
    T carry = sums.in[0];
    for (std::ptrdiff_t j = 0; j < n - 1; ++j) {
        if (j % WIDTH<T> == 0) carry = sums.carries[j / WIDTH<T>];
        T const out = sums.out ? sums.out[j] : T(0);
        T const next = cosine_sine[2 * j + 1] == T(0) ? sums.in[j + 1] : sums.in[j + 1] + (carry - out);
        grad[3 * j] = T(0.5) * (carry - sums.in[j + 1]);
        grad[3 * j + 1] = T(0.5) * (out - next);
        grad[3 * j + 2] = T(0.5) * sums.rotations[j];
        carry = next;
    }
}

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
