// What the bindings may call: plain functions, once per instruction set. Sizes: B batch, N steps, D inputs, H hidden.
#pragma once

#include <cstddef>
#include <cstdint>

namespace synv {

// A (B, N, C) array whose last axis is dense: element (b, n, c) is data[b * row + n * step + c].
template <class T> struct Sequence {
    T* data;
    std::ptrdiff_t row, step;
};

template <class T> struct GruForwardArgs {
    std::ptrdiff_t batch, steps, inputs, hidden;
    int threads;
    Sequence<T const> x;       // (B, N, D)
    T const* h0;               // (B, H)
    T const *w_ih, *w_hh;      // (3H, D), (3H, H); gates in the order r, z, n
    T const *b_ih, *b_hh;      // (3H) or null
    std::uint8_t const* mask;  // (B, N), nonzero at real steps, or null
    Sequence<T> out;           // (B, N, H), zero at padded steps
    T* h_n;                    // (B, H)
    Sequence<T> gates;         // (B, N, 4H): r, z, n and W_hn h + b_hn for the backward; data may be null
};

template <class T> struct GruBackwardArgs {
    std::ptrdiff_t batch, steps, inputs, hidden;
    int threads;
    Sequence<T const> grad_out;  // (B, N, H)
    T const* grad_h_n;           // (B, H)
    Sequence<T const> x, out, gates;
    T const* h0;
    T const *w_ih, *w_hh;
    std::uint8_t const* mask;
    Sequence<T> grad_x;        // (B, N, D), zero at padded steps; data may be null: not wanted
    T* grad_h0;                // (B, H)
    T *grad_w_ih, *grad_w_hh;  // (3H, D), (3H, H)
    T *grad_b_ih, *grad_b_hh;  // (3H)
};

// One chain, E_out R E_in. Sizes: B batch, N rows, D features. Arrays are dense.
template <class T> struct ChainArgs {
    std::ptrdiff_t batch, rows, features;
    int threads;
    bool is_upper;
    T const* x;       // (B, N, 2, D)
    T const* angles;  // (B, N-1, 3)
    T* y;             // (B, N, 2, D)
};

template <class T> struct ChainBackwardArgs {
    std::ptrdiff_t batch, rows, features;
    int threads;
    bool is_upper;
    T const *y, *grad;  // (B, N, 2, D)
    T const* angles;    // (B, N-1, 3)
    T *x, *grad_x;      // (B, N, 2, D); x null: not wanted
    T* grad_angles;     // (B, N-1, 3)
};

// Synvolution of order one without permutation. D features, split evenly among H heads. Arrays are dense.
template <class T> struct SynvolveArgs {
    std::ptrdiff_t batch, heads, rows, features;
    int threads;
    T const* v;              // (B, N, 2, D)
    T const *lower, *upper;  // (B, H, N-1, 3)
    T const* phase;          // (B, H, N)
    T* out;                  // (B, N, 2, D)
};

template <class T> struct SynvolveBackwardArgs {
    std::ptrdiff_t batch, heads, rows, features;
    int threads;
    T const *grad, *out;  // (B, N, 2, D)
    T const *lower, *upper, *phase;
    T* grad_v;  // (B, N, 2, D)
    T *grad_lower, *grad_upper, *grad_phase;
};

// Elements are multiplied by 0 with probability `rate`, else by 1 / (1 - rate), as `seed` and their position decide.
struct Dropout {
    std::uint64_t seed;
    double rate;
};

struct Elements {
    std::ptrdiff_t count;
    int threads;
    Dropout dropout;
};

template <class T> struct DropoutArgs {
    Elements elements;
    T const* x;
    T* out;
};

// out = dropout(softplus(a) tanh(b))
template <class T> struct GateArgs {
    Elements elements;
    T const *a, *b;
    T* out;
};

template <class T> struct GateBackwardArgs {
    Elements elements;
    T const *grad, *a, *b;
    T *grad_a, *grad_b;
};

// What is brought to length s: x; x with `other` added to its first features; x + zeta other[:D] + (1-zeta) other[D:];
// or sin(x).
enum class NormSource { ALONE, JOINED, MIXED, SINE };

// out = dropout(s u / |u|), row by row. Sizes: R rows, D features.
template <class T> struct NormArgs {
    std::ptrdiff_t rows, features, joined;  // joined: features of `other`, for JOINED
    int threads;
    NormSource source;
    T const *x, *other;  // (R, D); null, (R, joined) or (R, 2D)
    T scale, zeta;
    Dropout dropout;
    T* out;  // (R, D)
};

template <class T> struct NormBackwardArgs {
    NormArgs<T> norm;
    T const* grad;             // (R, D)
    T *grad_x, *grad_other;    // (R, D); (R, 2D) for MIXED, else null
    T *grad_scale, *grad_zeta;  // one number each
};

// Means of groups of sin(x), each row brought to unit length first if `unit`.
template <class T> struct MeansArgs {
    std::ptrdiff_t rows, groups, size;
    bool unit;
    int threads;
    T const* x;  // (R, groups, size)
    T* out;      // (R, groups)
};

template <class T> struct MeansBackwardArgs {
    MeansArgs<T> means;
    T const* grad;
    T* grad_x;
};

// Each returns false if there is not enough memory for its working space.
#define SYNV_DECLARE_KERNELS(ISA)                          \
    namespace ISA {                                        \
    bool chain_forward(ChainArgs<float> const& args); \
    bool chain_forward(ChainArgs<double> const& args); \
    bool chain_backward(ChainBackwardArgs<float> const& args); \
    bool chain_backward(ChainBackwardArgs<double> const& args); \
    bool synvolve_forward(SynvolveArgs<float> const& args); \
    bool synvolve_forward(SynvolveArgs<double> const& args); \
    bool synvolve_backward(SynvolveBackwardArgs<float> const& args); \
    bool synvolve_backward(SynvolveBackwardArgs<double> const& args); \
    bool gru_forward(GruForwardArgs<float> const& args);   \
    bool gru_forward(GruForwardArgs<double> const& args);  \
    bool gru_backward(GruBackwardArgs<float> const& args); \
    bool gru_backward(GruBackwardArgs<double> const& args); \
    bool dropout(DropoutArgs<float> const& args); \
    bool dropout(DropoutArgs<double> const& args); \
    bool gate_forward(GateArgs<float> const& args); \
    bool gate_forward(GateArgs<double> const& args); \
    bool gate_backward(GateBackwardArgs<float> const& args); \
    bool gate_backward(GateBackwardArgs<double> const& args); \
    bool norm_forward(NormArgs<float> const& args); \
    bool norm_forward(NormArgs<double> const& args); \
    bool norm_backward(NormBackwardArgs<float> const& args); \
    bool norm_backward(NormBackwardArgs<double> const& args); \
    bool means_forward(MeansArgs<float> const& args); \
    bool means_forward(MeansArgs<double> const& args); \
    bool means_backward(MeansBackwardArgs<float> const& args); \
    bool means_backward(MeansBackwardArgs<double> const& args); \
    }

SYNV_DECLARE_KERNELS(plain)
SYNV_DECLARE_KERNELS(avx2)
SYNV_DECLARE_KERNELS(avx512)

}  // namespace synv
