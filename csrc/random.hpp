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
#endif

constexpr int RANDOM_ROUNDS = 13, RANDOM_BLOCK = 64, RANDOM_LANES = 16;
constexpr int ROTATIONS[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5}, {6, 20}, {17, 11}, {25, 10}, {18, 20}};

struct Threefry {
    std::uint32_t key[5];

    explicit Threefry(std::uint64_t seed)
        : key{std::uint32_t(seed), std::uint32_t(seed >> 32), 0, 0,
              std::uint32_t(seed) ^ std::uint32_t(seed >> 32) ^ 0x1BD11BDAu} {}

    // The 64 words of a block.
    SYNV_INLINE void block(std::uint64_t number, std::uint32_t* to) const {
        std::uint64_t const counter = number * RANDOM_LANES;
        for (int lane = 0; lane < RANDOM_LANES; lane += WIDTH<float>) {
            Words x[4] = {words(std::uint32_t(counter) + std::uint32_t(lane) + key[0]),
                          words(std::uint32_t(counter >> 32) + key[1]), words(key[2]), words(key[3])};
            for (int i = 0; i < WIDTH<float>; ++i) x[0][i] += std::uint32_t(i);
            SYNV_UNROLL
            for (int round = 0; round < RANDOM_ROUNDS; ++round) {
                int const a = round % 2 ? 3 : 1, b = 4 - a;
                x[0] += x[a];
                x[a] = rotate_xor(x[a], ROTATIONS[round % 8][0], x[0]);
                x[2] += x[b];
                x[b] = rotate_xor(x[b], ROTATIONS[round % 8][1], x[2]);
                if (round % 4 < 3) continue;
                int const injection = round / 4 + 1;
                for (int i = 0; i < 4; ++i) x[i] += words(key[(injection + i) % 5]);
                x[3] += words(std::uint32_t(injection));
            }
            for (int word = 0; word < 4; ++word) std::memcpy(to + word * RANDOM_LANES + lane, &x[word], sizeof(Words));
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
            alignas(64) std::uint32_t block[RANDOM_BLOCK];
            random_.block(std::uint64_t(number), block);
            for (int i = 0; i < RANDOM_BLOCK; ++i) next[i] = std::int32_t(block[i]) < threshold_ ? T(0) : kept_;
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
