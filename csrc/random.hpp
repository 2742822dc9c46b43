// Random numbers for dropout: a function of a seed and of the element's position alone, so that any thread can make any
// part of them, and the backward makes them again instead of reading them.
//
// Threefry-4x32 with 13 rounds (Salmon et al., 2011: 12 pass BigCrush). Elements come in blocks of 64: element
// 16 w + l of block b is word w of counter 16 b + l, so that vectors of 4, 8 and 16 lanes make whole runs of elements.
#pragma once

#include "kernels.hpp"
#include "vector.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

#if defined(SYNV_VECTOR_EXTENSIONS)
typedef std::uint32_t Words __attribute__((vector_size(SYNV_VECTOR_BYTES)));
SYNV_INLINE Words words(std::uint32_t value) { return value - Words{}; }
SYNV_INLINE Words rotate_xor(Words x, int by, Words y) { return ((x << by) | (x >> (32 - by))) ^ y; }
// b where x, as signed numbers, are below the limit, else a.
SYNV_INLINE Vec<float> select_words(Words x, std::int32_t limit, float a, float b) {
    return (IntVec<float>)x < limit - IntVec<float>{} ? splat(b) : splat(a);
}
#else
using Words = Lanes<std::uint32_t, WIDTH<float>>;
SYNV_INLINE Words words(std::uint32_t value) {
    Words v;
    for (int i = 0; i < WIDTH<float>; ++i) v.lane[i] = value;
    return v;
}
SYNV_INLINE Words rotate_xor(Words x, int by, Words y) {
    for (int i = 0; i < WIDTH<float>; ++i) x.lane[i] = ((x.lane[i] << by) | (x.lane[i] >> (32 - by))) ^ y.lane[i];
    return x;
}
SYNV_INLINE Vec<float> select_words(Words x, std::int32_t limit, float a, float b) {
    Vec<float> v;
    for (int i = 0; i < WIDTH<float>; ++i) v.lane[i] = std::int32_t(x.lane[i]) < limit ? b : a;
    return v;
}
#endif

constexpr int RANDOM_ROUNDS = 13, RANDOM_BLOCK = 64, RANDOM_LANES = 16;
constexpr int ROTATIONS[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5}, {6, 20}, {17, 11}, {25, 10}, {18, 20}};
constexpr std::uint32_t LANE_NUMBERS[RANDOM_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Round R and those after it. By recursion, which keeps the four words in registers where a loop over an array does not.
template <int R> SYNV_INLINE void rounds(std::uint32_t const* key, Words& x0, Words& x1, Words& x2, Words& x3) {
    Words& a = R % 2 ? x3 : x1;
    Words& b = R % 2 ? x1 : x3;
    x0 += a;
    a = rotate_xor(a, ROTATIONS[R % 8][0], x0);
    x2 += b;
    b = rotate_xor(b, ROTATIONS[R % 8][1], x2);
    if constexpr (R % 4 == 3) {
        constexpr int I = R / 4 + 1;
        x0 += words(key[I % 5]);
        x1 += words(key[(I + 1) % 5]);
        x2 += words(key[(I + 2) % 5]);
        x3 += words(key[(I + 3) % 5] + I);
    }
    if constexpr (R + 1 < RANDOM_ROUNDS) rounds<R + 1>(key, x0, x1, x2, x3);
}

struct Threefry {
    std::uint32_t key[5];

    explicit Threefry(std::uint64_t seed)
        : key{std::uint32_t(seed), std::uint32_t(seed >> 32), 0, 0,
              std::uint32_t(seed) ^ std::uint32_t(seed >> 32) ^ 0x1BD11BDAu} {}

    // The 64 words of a block: calls put(place, words) with vectors of them.
    template <class Put> SYNV_INLINE void block(std::uint64_t number, Put const& put) const {
        std::uint64_t const counter = number * RANDOM_LANES;
        for (int lane = 0; lane < RANDOM_LANES; lane += WIDTH<float>) {
            Words x0, x1 = words(std::uint32_t(counter >> 32) + key[1]), x2 = words(key[2]), x3 = words(key[3]);
            std::memcpy(&x0, LANE_NUMBERS + lane, sizeof x0);
            x0 += words(std::uint32_t(counter) + key[0]);
            rounds<0>(key, x0, x1, x2, x3);
            put(lane, x0);
            put(RANDOM_LANES + lane, x1);
            put(2 * RANDOM_LANES + lane, x2);
            put(3 * RANDOM_LANES + lane, x3);
        }
    }
};

// The factors of dropout: 0 with probability `rate`, else 1 / (1 - rate).
template <class T> class Factors {
  public:
    // Room that an array for so many factors must have.
    static std::ptrdiff_t room(std::ptrdiff_t count) { return count + 2 * RANDOM_BLOCK; }

    explicit Factors(Dropout const& dropout)
        : active(dropout.rate > 0), random_(dropout.seed), kept_(dropout.rate < 1 ? T(1 / (1 - dropout.rate)) : T(0)) {
        double const steps = dropout.rate * 4294967296.0;
        // words are compared as signed numbers, which every instruction set can do
        threshold_ = steps < 4294967295.0 ? std::int32_t(std::int64_t(steps) - 2147483648LL) : 2147483647;
    }

    // Factors of elements first ... first + count - 1; returns where in `to` they begin.
    T const* make(std::ptrdiff_t first, std::ptrdiff_t count, T* to) const {
        std::ptrdiff_t const begin = first / RANDOM_BLOCK, end = (first + count + RANDOM_BLOCK - 1) / RANDOM_BLOCK;
        T* next = to;
        for (std::ptrdiff_t number = begin; number < end; ++number, next += RANDOM_BLOCK) {
            float kept[RANDOM_BLOCK];
            float* const chosen = sizeof(T) == sizeof(float) ? reinterpret_cast<float*>(next) : kept;
            random_.block(std::uint64_t(number), [&](int place, Words x) {
                store(chosen + place, select_words(x, threshold_, sizeof(T) == sizeof(float) ? float(kept_) : 1.0f, 0.0f));
            });
            if (sizeof(T) == sizeof(float)) continue;
            for (int i = 0; i < RANDOM_BLOCK; ++i) next[i] = kept_ * T(kept[i]);
        }
        return to + first % RANDOM_BLOCK;
    }

    bool const active;

  private:
    Threefry random_;
    T kept_;
    std::int32_t threshold_;
};

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
