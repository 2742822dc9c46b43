// A fixed-width vector of floats or doubles, as wide as the instruction set the file is compiled for.
//
// Everything lives in the namespace of that instruction set: an inline function shared between two of
// them could be merged by the linker into the version the machine cannot run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifndef SYNV_ISA
#define SYNV_ISA plain
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SYNV_INLINE inline __attribute__((always_inline))
#define SYNV_UNROLL _Pragma("GCC unroll 16")
#if !defined(SYNV_NO_VECTOR_EXTENSIONS)
#define SYNV_VECTOR_EXTENSIONS 1
#endif
#else
#define SYNV_INLINE inline
#define SYNV_UNROLL
#endif

// Keeps a vector that is used several times in a register: the compiler else likes to load it again for each use.
#if defined(SYNV_VECTOR_EXTENSIONS) && defined(__AVX512F__)
#define SYNV_KEEP(v) __asm__("" : "+v"(v))
#elif defined(SYNV_VECTOR_EXTENSIONS) && defined(__SSE2__)
#define SYNV_KEEP(v) __asm__("" : "+x"(v))
#else
#define SYNV_KEEP(v) ((void)0)
#endif

// Asks for the cache line of an address that will be read soon.
#if defined(__GNUC__) || defined(__clang__)
#define SYNV_PREFETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define SYNV_PREFETCH(address) ((void)0)
#endif

// For functions whose registers should not be mixed with their caller's.
#if defined(__GNUC__) || defined(__clang__)
#define SYNV_SEPARATE __attribute__((noinline))
#else
#define SYNV_SEPARATE
#endif

#if defined(__AVX512F__)
#define SYNV_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SYNV_VECTOR_BYTES 32
#else
#define SYNV_VECTOR_BYTES 16
#endif

namespace synv {
namespace SYNV_ISA {

template <class T> struct IntegerOf;
template <> struct IntegerOf<float> { using type = std::int32_t; };
template <> struct IntegerOf<double> { using type = std::int64_t; };
template <class T> using Integer = typename IntegerOf<T>::type;

// Lanes of a vector of T.
template <class T> constexpr int WIDTH = SYNV_VECTOR_BYTES / int(sizeof(T));

#if defined(SYNV_VECTOR_EXTENSIONS)

template <class T> struct VectorOf {
    typedef T type __attribute__((vector_size(SYNV_VECTOR_BYTES)));
};
template <class T> using Vec = typename VectorOf<T>::type;
template <class T> using IntVec = typename VectorOf<Integer<T>>::type;

template <class T> SYNV_INLINE Vec<T> splat(T value) { return value - Vec<T>{}; }

// Where mask is true (all bits set) take a, else b.
template <class T> SYNV_INLINE Vec<T> select_less(Vec<T> x, Vec<T> y, Vec<T> a, Vec<T> b) { return x < y ? a : b; }

template <class T> SYNV_INLINE IntVec<T> bits(Vec<T> x) { return (IntVec<T>)x; }
template <class T> SYNV_INLINE Vec<T> from_bits(IntVec<T> x) { return (Vec<T>)x; }
template <class T> SYNV_INLINE IntVec<T> add(IntVec<T> x, Integer<T> y) { return x + y; }
template <class T> SYNV_INLINE IntVec<T> shift_left(IntVec<T> x, int by) { return x << Integer<T>(by); }

#else

template <class E, int W> struct Lanes {
    E lane[W];
    friend SYNV_INLINE Lanes operator+(Lanes a, Lanes b) { for (int i = 0; i < W; ++i) a.lane[i] += b.lane[i]; return a; }
    friend SYNV_INLINE Lanes operator-(Lanes a, Lanes b) { for (int i = 0; i < W; ++i) a.lane[i] -= b.lane[i]; return a; }
    friend SYNV_INLINE Lanes operator*(Lanes a, Lanes b) { for (int i = 0; i < W; ++i) a.lane[i] *= b.lane[i]; return a; }
    friend SYNV_INLINE Lanes operator/(Lanes a, Lanes b) { for (int i = 0; i < W; ++i) a.lane[i] /= b.lane[i]; return a; }
    Lanes& operator+=(Lanes b) { return *this = *this + b; }
    E& operator[](int i) { return lane[i]; }
    E const& operator[](int i) const { return lane[i]; }
};
template <class T> using Vec = Lanes<T, WIDTH<T>>;
template <class T> using IntVec = Lanes<Integer<T>, WIDTH<T>>;

template <class T> SYNV_INLINE Vec<T> splat(T value) {
    Vec<T> v;
    for (int i = 0; i < WIDTH<T>; ++i) v.lane[i] = value;
    return v;
}
template <class T> SYNV_INLINE Vec<T> select_less(Vec<T> x, Vec<T> y, Vec<T> a, Vec<T> b) {
    for (int i = 0; i < WIDTH<T>; ++i) a.lane[i] = x.lane[i] < y.lane[i] ? a.lane[i] : b.lane[i];
    return a;
}
template <class T> SYNV_INLINE IntVec<T> bits(Vec<T> x) {
    IntVec<T> v;
    std::memcpy(&v, &x, sizeof v);
    return v;
}
template <class T> SYNV_INLINE Vec<T> from_bits(IntVec<T> x) {
    Vec<T> v;
    std::memcpy(&v, &x, sizeof v);
    return v;
}
template <class T> SYNV_INLINE IntVec<T> add(IntVec<T> x, Integer<T> y) {
    for (int i = 0; i < WIDTH<T>; ++i) x.lane[i] += y;
    return x;
}
template <class T> SYNV_INLINE IntVec<T> shift_left(IntVec<T> x, int by) {
    // Unsigned: shifting into the sign bit is what the caller may want.
    for (int i = 0; i < WIDTH<T>; ++i) x.lane[i] = Integer<T>(std::uint64_t(x.lane[i]) << by);
    return x;
}

#endif

// a * b + c. With -ffp-contract=fast this is one instruction where the instruction set has it.
template <class T> SYNV_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) { return a * b + c; }

template <class T> SYNV_INLINE Vec<T> load(T const* from) {
    Vec<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
template <class T> SYNV_INLINE void store(T* to, Vec<T> v) { std::memcpy(to, &v, sizeof v); }

// The first `count` lanes; the others are zero (load) or left alone (store). Incomplete vectors go their own way:
// picking single lanes would drive whole arrays of vectors out of the registers.
template <class T> SYNV_SEPARATE Vec<T> load_incomplete(T const* from, std::ptrdiff_t count) {
    T lanes[WIDTH<T>] = {};
    for (std::ptrdiff_t i = 0; i < count; ++i) lanes[i] = from[i];
    return load(lanes);
}
template <class T> SYNV_SEPARATE void store_incomplete(T* to, Vec<T> v, std::ptrdiff_t count) {
    T lanes[WIDTH<T>];
    store(lanes, v);
    for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = lanes[i];
}
template <class T> SYNV_INLINE Vec<T> load_first(T const* from, std::ptrdiff_t count) {
    return count >= WIDTH<T> ? load(from) : load_incomplete(from, count);
}
template <class T> SYNV_INLINE void store_first(T* to, Vec<T> v, std::ptrdiff_t count) {
    if (count >= WIDTH<T>) return store(to, v);
    store_incomplete<T>(to, v, count);
}

template <class T> SYNV_INLINE void prefetch(T const* from, std::ptrdiff_t count) {
    for (std::ptrdiff_t i = 0; i < count; i += 64 / std::ptrdiff_t(sizeof(T))) SYNV_PREFETCH(from + i);
}

template <class T> SYNV_INLINE T horizontal_sum(Vec<T> v) {
    T sum = v[0];
    for (int i = 1; i < WIDTH<T>; ++i) sum += v[i];
    return sum;
}

}  // namespace SYNV_ISA
}  // namespace synv
