// Working memory of a kernel: one block, aligned, in large pages where the system has them, given back at the end.
#pragma once

#include <cstdlib>

#include "vector.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace synv {
namespace SYNV_ISA {
namespace {

// Blocks up to this size are kept for the next call: fresh pages cost more than the arithmetic.
constexpr std::size_t KEPT_BYTES = std::size_t(64) << 20;
constexpr std::size_t PAGE = std::size_t(1) << 21;

class Workspace {
  public:
    Workspace() = default;
    Workspace(Workspace const&) = delete;
    Workspace& operator=(Workspace const&) = delete;
    ~Workspace() { release(); }

    // A block of at least so many bytes, or null. Its content is undefined.
    char* ask(std::size_t bytes) {
        if (bytes <= size_) return data_;
        release();
        std::size_t const rounded = (bytes + PAGE - 1) / PAGE * PAGE;
#if defined(__linux__)
        void* found = nullptr;
        if (posix_memalign(&found, PAGE, rounded) != 0) return nullptr;
        madvise(found, rounded, MADV_HUGEPAGE);  // advice: failing is fine
        data_ = static_cast<char*>(found);
        block_ = found;
#else
        block_ = std::malloc(rounded + 64);
        if (!block_) return nullptr;
        data_ = static_cast<char*>(block_) + (64 - reinterpret_cast<std::uintptr_t>(block_) % 64);
#endif
        size_ = rounded;
        return data_;
    }

    // Keep small blocks only.
    void settle() {
        if (size_ > KEPT_BYTES) release();
    }

  private:
    void release() {
        std::free(block_);
        block_ = nullptr;
        data_ = nullptr;
        size_ = 0;
    }
    void* block_ = nullptr;
    char* data_ = nullptr;
    std::size_t size_ = 0;
};

template <class T> inline void fill(T* array, std::ptrdiff_t count, T value) {
    for (std::ptrdiff_t i = 0; i < count; ++i) array[i] = value;
}

// Cuts a block into aligned arrays. Called twice: once with no block to count, once to cut.
class Cutter {
  public:
    explicit Cutter(char* block) : block_(block) {}
    template <class T> T* array(std::ptrdiff_t count) {
        T* const found = block_ ? reinterpret_cast<T*>(block_ + used_) : nullptr;
        // a line of its own between arrays keeps their rows from meeting in the same cache sets
        used_ += (std::size_t(count) * sizeof(T) + 63) / 64 * 64 + 64;
        return found;
    }
    std::size_t used() const { return used_; }

  private:
    char* block_;
    std::size_t used_ = 0;
};

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
