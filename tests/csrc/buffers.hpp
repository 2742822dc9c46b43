// Heap buffers of exactly the right size, so that the sanitizers see every access beyond them.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>

#include "../../csrc/kernels.hpp"

namespace {

template <class T> using Array = std::unique_ptr<T[], decltype(&std::free)>;

unsigned state = 1;

unsigned next_random() { return state = state * 1664525u + 1013904223u; }

template <class T> Array<T> empty(std::ptrdiff_t count) {
    return Array<T>(static_cast<T*>(std::malloc(std::size_t(count) * sizeof(T))), &std::free);
}
// Uniform in +-scale.
template <class T> Array<T> random(std::ptrdiff_t count, T scale = T(0.5)) {
    Array<T> a = empty<T>(count);
    for (std::ptrdiff_t i = 0; i < count; ++i) a[i] = scale * (T(next_random() >> 8) / T(1 << 23) - T(1));
    return a;
}
template <class T> double total(Array<T> const& a, std::ptrdiff_t count) {
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < count; ++i) sum += std::abs(double(a[i]));
    return sum;
}

}  // namespace
