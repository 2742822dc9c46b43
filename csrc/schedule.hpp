// Spreads an operator over threads: over sequences and heads where there are enough, else over segments of a sequence,
// else over tiles of features.
//
// An operator is a struct with
//     using Value;  std::ptrdiff_t batch, heads, rows, features; int threads;   (features of all heads together)
//     static constexpr int PLANES;                 scratch: so many values per row held and feature of a tile
//     struct Shared { Shared(Cutter&, rows); };    what all tiles of an item read, set by prepare(shared, item, most,
//                                                  threads); its `cuts` say how the item is cut, into segments of at
//                                                  most so many rows
//     struct Own { Own(Cutter&, rows); };          what is added up: clear(), add(other); finish(shared, own, item)
//     template <int K, Place FAR> void tile(shared, own, scratch, item, segment, first feature of the row, count)
// where an item is one head of one sequence.
#pragma once

#include "givens.hpp"
#include "segments.hpp"
#include "workspace.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace synv {
namespace SYNV_ISA {
namespace {

constexpr int MAX_THREADS = 256;

// The rows that a segment holds should stay in the second-level cache of today's processors.
constexpr std::ptrdiff_t CACHE_BYTES = 640 << 10;

// So many rows times features, some tens of microseconds of work, are worth a thread.
constexpr std::ptrdiff_t GRAIN = 16384;

inline int thread_number() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

struct Workspaces {
    Workspace shared, own[MAX_THREADS], scratch[MAX_THREADS];
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
        : op_(op), spaces_(workspaces()), items_(op.batch * op.heads), features_(op.features / op.heads),
          width_(features_ > WIDTH<T> ? TILE_VECTORS * WIDTH<T> : WIDTH<T>), tiles_((features_ + width_ - 1) / width_),
          threads_(useful_threads(op)) {
        std::ptrdiff_t const row_bytes = (Op::PLANES ? Op::PLANES : 1) * width_ * std::ptrdiff_t(sizeof(T));
        most_ = CACHE_BYTES / row_bytes / WIDTH<T> * WIDTH<T>;
    }

    // False if there is not enough memory.
    bool run() {
        if (items_ == 0 || tiles_ == 0) return true;
        if (reserve()) {
            if (items_ % threads_ == 0 || items_ >= 4 * threads_) spread_items();
            else for (std::ptrdiff_t item = 0; item < items_; ++item) share_item(item);
        }
        spaces_.shared.settle();
        for (int t = 0; t < threads_; ++t) {
            spaces_.own[t].settle();
            spaces_.scratch[t].settle();
        }
        return !failed_;
    }

  private:
    // Waking a thread costs some microseconds, and much more on a busy machine: small work is one thread's.
    static int useful_threads(Op const& op) {
        std::ptrdiff_t const useful = 1 + op.batch * op.rows * op.features / GRAIN;
        std::ptrdiff_t const most = op.threads < MAX_THREADS ? op.threads : MAX_THREADS;
        return int(useful < most ? useful : most < 1 ? 1 : most);
    }

    bool reserve() {
        Cutter own(nullptr), shared(nullptr);
        Own(own, op_.rows);
        Shared(shared, op_.rows);
        shared_ = spaces_.shared.ask(shared.used());
        failed_ = !shared_;
        for (int t = 0; t < threads_; ++t) {
            own_[t] = spaces_.own[t].ask(own.used() + shared.used());
            failed_ = failed_ || !own_[t];
        }
        return !failed_;
    }

    // Each thread does whole items.
    void spread_items() {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_)
        for (std::ptrdiff_t item = 0; item < items_; ++item) {
            Cutter cutter(own_[thread_number()]);
            Own own(cutter, op_.rows);
            Shared shared(cutter, op_.rows);
            op_.prepare(shared, item, most_, 1);
            own.clear();
            for (std::ptrdiff_t segment = 0; segment < shared.cuts.count; ++segment)
                for (std::ptrdiff_t tile = 0; tile < tiles_; ++tile) one(shared, own, item, segment, tile);
            op_.finish(shared, own, item);
        }
    }

    // All threads do one item: its segments, which add up different rows, or its tiles, whose sums are joined.
    void share_item(std::ptrdiff_t item) {
        Cutter shared_cutter(shared_);
        Shared shared(shared_cutter, op_.rows);
        op_.prepare(shared, item, most_, threads_);
        Own const own = own_of(0);
        own.clear();
        if (shared.cuts.count >= 2 * threads_) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_)
            for (std::ptrdiff_t segment = 0; segment < shared.cuts.count; ++segment)
                for (std::ptrdiff_t tile = 0; tile < tiles_; ++tile) one(shared, own, item, segment, tile);
        } else {
            for (int t = 1; t < threads_; ++t) own_of(t).clear();
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_)
            for (std::ptrdiff_t tile = 0; tile < tiles_; ++tile)
                for (std::ptrdiff_t segment = 0; segment < shared.cuts.count; ++segment)
                    one(shared, own_of(thread_number()), item, segment, tile);
            for (int t = 1; t < threads_; ++t) own.add(own_of(t));
        }
        op_.finish(shared, own, item);
    }

    Own own_of(int thread) const {
        Cutter cutter(own_[thread]);
        return Own(cutter, op_.rows);
    }

    // One tile of one segment, by the compiled variant for its width and for whether it ends within a vector.
    void one(Shared const& shared, Own const& own, std::ptrdiff_t item, std::ptrdiff_t segment, std::ptrdiff_t tile) {
        std::size_t const bytes = std::size_t(shared.cuts.held * Op::PLANES * width_) * sizeof(T);
        T* const scratch = reinterpret_cast<T*>(spaces_.scratch[thread_number()].ask(bytes));
        if (bytes > 0 && !scratch) {
#pragma omp atomic write
            failed_ = true;
            return;
        }
        std::ptrdiff_t const begin = tile * width_, rest = features_ - begin;
        std::ptrdiff_t const count = rest < width_ ? rest : width_;
        std::ptrdiff_t const first = item % op_.heads * features_ + begin;
        bool const wide = width_ > WIDTH<T>, tail = count < width_;
        if (wide && tail) op_.template tile<TILE_VECTORS, Place::TENSOR_TAIL>(shared, own, scratch, item, segment, first, count);
        else if (wide) op_.template tile<TILE_VECTORS, Place::TENSOR>(shared, own, scratch, item, segment, first, count);
        else if (tail) op_.template tile<1, Place::TENSOR_TAIL>(shared, own, scratch, item, segment, first, count);
        else op_.template tile<1, Place::TENSOR>(shared, own, scratch, item, segment, first, count);
    }

    Op const& op_;
    Workspaces& spaces_;
    std::ptrdiff_t items_, features_, width_, tiles_, most_;
    int threads_;
    bool failed_ = false;
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
