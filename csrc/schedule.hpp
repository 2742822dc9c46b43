// Spreads an operator over threads: over sequences and heads where there are enough, else over tiles of features.
//
// An operator is a struct with
//     using Value;  std::ptrdiff_t batch, heads, rows, features; int threads;   (features of all heads together)
//     static constexpr int PLANES;                 scratch: so many values per row and feature of a tile
//     struct Shared { Shared(Cutter&, rows); };    what all tiles of an item read, set by prepare(shared, item)
//     struct Own { Own(Cutter&, rows); };          what a thread adds up: clear(), add(other); used by finish(shared, own, item)
//     template <int K, Place FAR> void tile(shared, own, scratch, item, first feature of the row, count)
// where an item is one head of one sequence.
#pragma once

#include <type_traits>

#include "givens.hpp"
#include "workspace.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace synv {
namespace SYNV_ISA {
namespace {

constexpr int MAX_THREADS = 256;

// A wide tile reads whole lines and shares each coefficient; beyond this size its working rows crowd the caches.
constexpr std::ptrdiff_t CACHE_BYTES = 2048 << 10;

inline int thread_number() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

struct Workspaces {
    Workspace shared, own[MAX_THREADS];
};

inline Workspaces& workspaces() {
    static thread_local Workspaces all;  // of the calling thread: two callers never share
    return all;
}

template <class Op> class Schedule {
    using T = typename Op::Value;
    using Shared = typename Op::Shared;
    using Own = typename Op::Own;

  public:
    explicit Schedule(Op const& op)
        : op_(op), items_(op.batch * op.heads), features_(op.features / op.heads),
          threads_(op.threads < 1 ? 1 : op.threads > MAX_THREADS ? MAX_THREADS : op.threads) {
        std::ptrdiff_t const wide = TILE_VECTORS * WIDTH<T>;
        bool const fits = op.rows * Op::PLANES * wide * std::ptrdiff_t(sizeof(T)) <= CACHE_BYTES;
        width_ = features_ > WIDTH<T> && fits ? wide : WIDTH<T>;
        tiles_ = (features_ + width_ - 1) / width_;
    }

    // False if there is not enough memory.
    bool run() {
        if (items_ == 0 || tiles_ == 0) return true;
        bool const enough = reserve();
        if (enough) {
            if (items_ % threads_ == 0 || items_ >= 4 * threads_) spread_items();
            else spread_tiles();
        }
        Workspaces& spaces = workspaces();
        spaces.shared.settle();
        for (int t = 0; t < threads_; ++t) spaces.own[t].settle();
        return enough;
    }

  private:
    bool reserve() {
        Cutter own(nullptr), shared(nullptr);
        Own(own, op_.rows);
        own.array<T>(op_.rows * Op::PLANES * width_);
        Shared(shared, op_.rows);
        Workspaces& spaces = workspaces();
        shared_ = spaces.shared.ask(shared.used());
        bool enough = shared_ != nullptr;
        for (int t = 0; t < threads_; ++t) {
            own_[t] = spaces.own[t].ask(own.used() + shared.used());
            enough = enough && own_[t];
        }
        return enough;
    }

    // A thread does all tiles of an item.
    void spread_items() {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_)
        for (std::ptrdiff_t item = 0; item < items_; ++item) {
            Cutter cutter(own_[thread_number()]);
            Own own(cutter, op_.rows);
            T* const scratch = cutter.array<T>(op_.rows * Op::PLANES * width_);
            Shared shared(cutter, op_.rows);
            op_.prepare(shared, item);
            own.clear();
            for (std::ptrdiff_t tile = 0; tile < tiles_; ++tile) one(shared, own, scratch, item, tile);
            op_.finish(shared, own, item);
        }
    }

    // The threads share the tiles of an item, and what they add up is joined.
    void spread_tiles() {
        Cutter shared_cutter(shared_);
        Shared shared(shared_cutter, op_.rows);
        for (std::ptrdiff_t item = 0; item < items_; ++item) {
            op_.prepare(shared, item);
            for (int t = 0; t < threads_; ++t) own_of(t).clear();
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_)
            for (std::ptrdiff_t tile = 0; tile < tiles_; ++tile) {
                Cutter cutter(own_[thread_number()]);
                Own own(cutter, op_.rows);
                one(shared, own, cutter.array<T>(op_.rows * Op::PLANES * width_), item, tile);
            }
            for (int t = 1; t < threads_; ++t) own_of(0).add(own_of(t));
            op_.finish(shared, own_of(0), item);
        }
    }

    Own own_of(int thread) const {
        Cutter cutter(own_[thread]);
        return Own(cutter, op_.rows);
    }

    // Picks the compiled variant: width of the tile, and whether it ends within a vector.
    void one(Shared const& shared, Own const& own, T* scratch, std::ptrdiff_t item, std::ptrdiff_t tile) const {
        std::ptrdiff_t const begin = tile * width_, rest = features_ - begin;
        std::ptrdiff_t const count = rest < width_ ? rest : width_;
        std::ptrdiff_t const first = item % op_.heads * features_ + begin;
        bool const wide = TILE_VECTORS > 1 && width_ > WIDTH<T>, tail = count < width_;
        if (wide && tail) op_.template tile<TILE_VECTORS, Place::TENSOR_TAIL>(shared, own, scratch, item, first, count);
        else if (wide) op_.template tile<TILE_VECTORS, Place::TENSOR>(shared, own, scratch, item, first, count);
        else if (tail) op_.template tile<1, Place::TENSOR_TAIL>(shared, own, scratch, item, first, count);
        else op_.template tile<1, Place::TENSOR>(shared, own, scratch, item, first, count);
    }

    Op const& op_;
    std::ptrdiff_t items_, features_, width_, tiles_;
    int threads_;
    char* shared_ = nullptr;
    char* own_[MAX_THREADS] = {};
};

// For operators that add nothing up.
struct Nothing {
    Nothing(Cutter&, std::ptrdiff_t) {}
    void clear() const {}
    void add(Nothing const&) const {}
};

// COUNT arrays of sums, one value per row; padded, because they are added to vector by vector.
template <class T, int COUNT> struct RowSums {
    std::ptrdiff_t length;
    T* of[COUNT];

    RowSums(Cutter& cutter, std::ptrdiff_t rows) : length(rows + 2 * WIDTH<T>) {
        for (T*& array : of) array = cutter.array<T>(length);
    }
    void clear() const {
        for (T* array : of) fill(array, length, T(0));
    }
    void add(RowSums const& other) const {
        for (int a = 0; a < COUNT; ++a)
            for (std::ptrdiff_t i = 0; i < length; ++i) of[a][i] += other.of[a][i];
    }
};

}  // namespace
}  // namespace SYNV_ISA
}  // namespace synv
