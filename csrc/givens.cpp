// One chain of rotations, E_out R E_in (phases.hpp), and its backward by un-rotation: one sweep each.
#include "kernels.hpp"
#include "phases.hpp"
#include "schedule.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

template <class T> struct Coefficients {
    T *in, *out;     // (N, 2): cosine and sine of the phases before and after the real rotations
    T* rotations;    // (N-1, 2)
    double* angle;   // (N)
    Cuts cuts;       // none: one sweep from tensor to tensor holds nothing

    Coefficients(Cutter& cutter, std::ptrdiff_t n)
        : in(cutter.array<T>(2 * n)), out(cutter.array<T>(2 * n)), rotations(cutter.array<T>(2 * n)),
          angle(cutter.array<double>(n)) {}

    void set(T const* angles, bool upper, std::ptrdiff_t n, int threads) {
        cuts = {n, 1, 0};
        fill(angle, n, 0.0);
        upper ? upper_phases(angles, n, angle, nullptr) : lower_phases(angles, n, angle, nullptr);
        cosines_and_sines(angle, n, in, threads);
        fill(angle, n, 0.0);
        upper ? upper_phases(angles, n, nullptr, angle) : lower_phases(angles, n, nullptr, angle);
        cosines_and_sines(angle, n, out, threads);
        real_rotations(angles, n - 1, rotations, threads);
    }
};

enum { IN, OUT, ROTATIONS, CARRIES, SUMS };  // sums of the rows before and after the chain, of rotations and carry

// A chain has no heads of its own: those of Schedule are one.
template <class T> struct Forward : ChainArgs<T> {
    using Value = T;
    using Shared = Coefficients<T>;
    using Own = Nothing;
    static constexpr int PLANES = 0;
    std::ptrdiff_t heads = 1;
    explicit Forward(ChainArgs<T> const& args) : ChainArgs<T>(args) {}

    void prepare(Shared& c, std::ptrdiff_t item, std::ptrdiff_t, int threads) const {
        c.set(this->angles + item * 3 * (this->rows - 1), this->is_upper, this->rows, threads);
    }
    void finish(Shared const&, Own const&, std::ptrdiff_t) const {}

    template <int K, Place FAR>
    void tile(Shared const& c, Own const&, T*, std::ptrdiff_t item, std::ptrdiff_t, std::ptrdiff_t first,
              std::ptrdiff_t count) const {
        std::ptrdiff_t const n = this->rows, d = this->features, at = item * n * 2 * d + first;
        SweepArgs<T, 1> const args{
            count, {{this->x + at, 2 * d, d, 0}}, {{this->y + at, 2 * d, d, 0}}, c.in, c.out, c.rotations, {}};
        if (this->is_upper) run<K, Way<false, 1, 1, 1, FAR, FAR>>(args);
        else run<K, Way<true, -1, 1, 1, FAR, FAR>>(args);
    }

    template <int K, class W> void run(SweepArgs<T, 1> const& args) const {
        std::ptrdiff_t const last = this->rows - 1;
        auto carries = start<T, K, W>(args, W::DOWN ? 0 : last);
        sweep<T, K, W>(args, carries, 0, last);
        end<T, K, W>(args, W::DOWN ? last : 0, carries);
    }
};

template <class T> struct Backward : ChainBackwardArgs<T> {
    using Value = T;
    using Shared = Coefficients<T>;
    using Own = RowSums<T, SUMS>;
    static constexpr int PLANES = 0;
    std::ptrdiff_t heads = 1;
    explicit Backward(ChainBackwardArgs<T> const& args) : ChainBackwardArgs<T>(args) {}

    void prepare(Shared& c, std::ptrdiff_t item, std::ptrdiff_t, int threads) const {
        c.set(this->angles + item * 3 * (this->rows - 1), this->is_upper, this->rows, threads);
    }
    void finish(Shared const& c, Own const& sums, std::ptrdiff_t item) const {
        ChainSums<T> const chain{sums.of[IN], sums.of[OUT], sums.of[ROTATIONS], sums.of[CARRIES]};
        auto const gradients = this->is_upper ? upper_gradients<T> : lower_gradients<T>;
        gradients(this->rows, chain, c.rotations, this->grad_angles + item * 3 * (this->rows - 1));
    }

    template <int K, Place FAR>
    void tile(Shared const& c, Own const& sums, T*, std::ptrdiff_t item, std::ptrdiff_t, std::ptrdiff_t first,
              std::ptrdiff_t count) const {
        std::ptrdiff_t const n = this->rows, d = this->features, at = item * n * 2 * d + first;
        T* const x = this->x ? this->x + at : nullptr;
        SweepArgs<T, 2> const args{count,
                                   {{this->y + at, 2 * d, d, 0}, {this->grad + at, 2 * d, d, 0}},
                                   {{x, 2 * d, d, 0}, {this->grad_x + at, 2 * d, d, 0}},
                                   c.out, c.in, c.rotations,
                                   {sums.of[OUT], sums.of[IN], sums.of[ROTATIONS], sums.of[CARRIES], T(1)}};
        if (this->is_upper) run<K, Way<true, 1, -1, -1, FAR, FAR>>(args);
        else run<K, Way<false, -1, -1, -1, FAR, FAR>>(args);
    }

    template <int K, class W> void run(SweepArgs<T, 2> const& args) const {
        std::ptrdiff_t const last = this->rows - 1, from = W::DOWN ? 0 : last, to = W::DOWN ? last : 0;
        auto carries = start<T, K, W>(args, from);
        args.sums.inputs[from] += carry_sum(carries);
        sweep_and_sum<T, K, W, true>(args, carries, 0, last);
        args.sums.outputs[to] += carry_sum(carries);
        end<T, K, W>(args, to, carries);
    }
};

}  // namespace

bool chain_forward(ChainArgs<float> const& args) { return Schedule(Forward<float>(args)).run(); }
bool chain_forward(ChainArgs<double> const& args) { return Schedule(Forward<double>(args)).run(); }
bool chain_backward(ChainBackwardArgs<float> const& args) { return Schedule(Backward<float>(args)).run(); }
bool chain_backward(ChainBackwardArgs<double> const& args) { return Schedule(Backward<double>(args)).run(); }

}  // namespace SYNV_ISA
}  // namespace synv
