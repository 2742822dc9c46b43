// Synvolution of order one: out = conj(e0) R1' conj(e1) R2' e^{i phi} R2 e1 R1 e0 v, with R1, R2 the real rotations of
// the upper and the lower chain, ' the transpose, and e0, e1 one phase per row (phases.hpp). Four sweeps over a tile of
// features that stays in cache; input read once, output written once.
#include "kernels.hpp"
#include "phases.hpp"
#include "schedule.hpp"

namespace synv {
namespace SYNV_ISA {
namespace {

template <class T> struct Coefficients {
    T *e0, *e1, *phi;  // (N, 2): cosine and sine
    T *r1, *r2;        // (N-1, 2): upper and lower chain
    double* angle;     // (N)
    Cuts cuts;

    Coefficients(Cutter& cutter, std::ptrdiff_t n)
        : e0(cutter.array<T>(2 * n)), e1(cutter.array<T>(2 * n)), phi(cutter.array<T>(2 * n)),
          r1(cutter.array<T>(2 * n)), r2(cutter.array<T>(2 * n)), angle(cutter.array<double>(n)) {}

    void set(T const* lower, T const* upper, T const* phase, std::ptrdiff_t n, std::ptrdiff_t most, int threads) {
        fill(angle, n, 0.0);
        upper_phases(upper, n, angle, nullptr);
        cosines_and_sines(angle, n, e0, threads);
        fill(angle, n, 0.0);
        upper_phases(upper, n, nullptr, angle);
        lower_phases(lower, n, angle, nullptr);
        cosines_and_sines(angle, n, e1, threads);
        for (std::ptrdiff_t i = 0; i < n; ++i) angle[i] = double(phase[i]);
        cosines_and_sines(angle, n, phi, threads);
        real_rotations(upper, n - 1, r1, threads);
        real_rotations(lower, n - 1, r2, threads);
        cuts.set(r1, r2, n, most);
    }
};

// Sums of an item over its features: of a chain minus those of its adjoint, which is all that the gradients need.
// Rows before R1, between R1 and R2, after R2; then rotations and carry of either chain.
enum { BEFORE, BETWEEN, AFTER, ROTATIONS1, ROTATIONS2, CARRIES1, CARRIES2, SUMS };

// What both directions have in common: Args is the struct of kernels.hpp.
template <class T, template <class> class Args> struct Synvolve : Args<T> {
    using Value = T;
    using Shared = Coefficients<T>;
    explicit Synvolve(Args<T> const& args) : Args<T>(args) {}

    void prepare(Shared& c, std::ptrdiff_t item, std::ptrdiff_t most, int threads) const {
        std::ptrdiff_t const n = this->rows, angles = 3 * (n - 1);
        c.set(this->lower + item * angles, this->upper + item * angles, this->phase + item * n, n, most, threads);
    }
    // Where a tile begins in a tensor.
    std::ptrdiff_t at(std::ptrdiff_t item, std::ptrdiff_t first) const {
        return item / this->heads * this->rows * 2 * this->features + first;
    }
};

template <class T> struct Forward : Synvolve<T, SynvolveArgs> {
    using Shared = Coefficients<T>;
    using Own = Nothing;
    static constexpr int PLANES = 2;
    using Synvolve<T, SynvolveArgs>::Synvolve;

    void finish(Shared const&, Own const&, std::ptrdiff_t) const {}

    template <int K, Place FAR>
    void tile(Shared const& c, Own const&, T* scratch, std::ptrdiff_t item, std::ptrdiff_t segment,
              std::ptrdiff_t first, std::ptrdiff_t count) const {
        constexpr Place NEAR = Place::SCRATCH;
        std::ptrdiff_t const d = this->features, width = K * WIDTH<T>, at = this->at(item, first);
        Segment const cut = c.cuts.segment(c.r1, c.r2, segment, this->rows);
        Rows<T const> const input{this->v + at, 2 * d, d, 0}, back{scratch, 2 * width, width, cut.low};
        Rows<T> const output{this->out + at, 2 * d, d, 0}, work{scratch, 2 * width, width, cut.low};
        run<K, Way<false, 1, 1, 0, FAR, NEAR>>(cut.pass[0], {count, {input}, {work}, c.e0, nullptr, c.r1, {}});
        run<K, Way<true, -1, 1, 0, NEAR, NEAR>>(cut.pass[1], {count, {back}, {work}, c.e1, nullptr, c.r2, {}});
        run<K, Way<false, -1, 1, 0, NEAR, NEAR>>(cut.pass[2], {count, {back}, {work}, c.phi, nullptr, c.r2, {}});
        run<K, Way<true, 1, -1, -1, NEAR, FAR>>(cut.pass[3], {count, {back}, {output}, c.e1, c.e0, c.r1, {}});
    }

    template <int K, class W> void run(Pass const& pass, SweepArgs<T, 1> const& args) const {
        auto carries = start<T, K, W>(args, pass.start);
        if (W::DOWN) carry_through<T, K, W>(args, carries, pass.start, pass.begin);
        else carry_through<T, K, W>(args, carries, pass.end, pass.start);
        sweep<T, K, W>(args, carries, pass.begin, pass.end);
        if (pass.closes) end<T, K, W>(args, W::DOWN ? pass.end : 0, carries);
    }
};

template <class T> struct Backward : Synvolve<T, SynvolveBackwardArgs> {
    using Shared = Coefficients<T>;
    using Own = RowSums<T, SUMS>;
    static constexpr int PLANES = 4;
    using Synvolve<T, SynvolveBackwardArgs>::Synvolve;

    void finish(Shared const& c, Own const& sums, std::ptrdiff_t item) const {
        std::ptrdiff_t const n = this->rows;
        ChainSums<T> const upper{sums.of[BEFORE], sums.of[BETWEEN], sums.of[ROTATIONS1], sums.of[CARRIES1]};
        // e^{i phi} keeps Im(conj(g) x), so after R2 the chain and its adjoint cancel
        ChainSums<T> const lower{sums.of[BETWEEN], nullptr, sums.of[ROTATIONS2], sums.of[CARRIES2]};
        upper_gradients(n, upper, c.r1, this->grad_upper + item * 3 * (n - 1));
        lower_gradients(n, lower, c.r2, this->grad_lower + item * 3 * (n - 1));
        for (std::ptrdiff_t i = 0; i < n; ++i) this->grad_phase[item * n + i] = -sums.of[AFTER][i];
    }

    // Undo the four sweeps one after the other: the forward's own sweeps with phi negated, on signal and gradient.
    template <int K, Place FAR>
    void tile(Shared const& c, Own const& sums, T* scratch, std::ptrdiff_t item, std::ptrdiff_t segment,
              std::ptrdiff_t first, std::ptrdiff_t count) const {
        constexpr Place NEAR = Place::SCRATCH;
        std::ptrdiff_t const d = this->features, width = K * WIDTH<T>, at = this->at(item, first);
        Segment const cut = c.cuts.segment(c.r1, c.r2, segment, this->rows);
        T* const scratch_g = scratch + 2 * width;
        Rows<T const> const x{this->out + at, 2 * d, d, 0}, g{this->grad + at, 2 * d, d, 0};
        Rows<T const> const back_x{scratch, 4 * width, width, cut.low}, back_g{scratch_g, 4 * width, width, cut.low};
        Rows<T> const work_x{scratch, 4 * width, width, cut.low}, work_g{scratch_g, 4 * width, width, cut.low};
        Rows<T> const result{this->grad_v + at, 2 * d, d, 0}, unwanted{nullptr, 0, 0, 0};
        run<K, Way<false, 1, 1, 0, FAR, NEAR>, false>(
            cut, 0, {count, {x, g}, {work_x, work_g}, c.e0, nullptr, c.r1,
                     {sums.of[BEFORE], nullptr, sums.of[ROTATIONS1], sums.of[CARRIES1], T(-1)}});
        run<K, Way<true, -1, 1, 0, NEAR, NEAR>, false>(
            cut, 1, {count, {back_x, back_g}, {work_x, work_g}, c.e1, nullptr, c.r2,
                     {sums.of[BETWEEN], nullptr, sums.of[ROTATIONS2], sums.of[CARRIES2], T(-1)}});
        run<K, Way<false, -1, -1, 0, NEAR, NEAR>, false>(
            cut, 2, {count, {back_x, back_g}, {work_x, work_g}, c.phi, nullptr, c.r2,
                     {sums.of[AFTER], nullptr, sums.of[ROTATIONS2], sums.of[CARRIES2], T(1)}});
        run<K, Way<true, 1, -1, -1, NEAR, FAR>, true>(
            cut, 3, {count, {back_x, back_g}, {unwanted, result}, c.e1, c.e0, c.r1,
                     {sums.of[BETWEEN], sums.of[BEFORE], sums.of[ROTATIONS1], sums.of[CARRIES1], T(1)}});
    }

    // One pass; sums are taken over the segment's own rotations, and over an end row with the segment that holds it.
    template <int K, class W, bool OUTPUTS> void run(Segment const& cut, int i, SweepArgs<T, 2> const& args) const {
        Pass const& pass = cut.pass[i];
        std::ptrdiff_t const n = this->rows, last_row = W::DOWN ? n - 1 : 0;
        std::ptrdiff_t const own_end = cut.last < n - 1 ? cut.last + 1 : n - 1;
        auto carries = start<T, K, W>(args, pass.start);
        if (W::DOWN ? cut.first == 0 : cut.last == n - 1)
            args.sums.inputs[pass.start] += args.sums.sign * carry_sum(carries);
        if (W::DOWN) {
            carry_through<T, K, W>(args, carries, pass.start, pass.begin);
            sweep<T, K, W>(args, carries, pass.begin, cut.first);
            sweep_and_sum<T, K, W, OUTPUTS>(args, carries, cut.first, own_end);
            sweep<T, K, W>(args, carries, own_end, pass.end);
        } else {
            carry_through<T, K, W>(args, carries, pass.end, pass.start);
            sweep<T, K, W>(args, carries, own_end, pass.end);
            sweep_and_sum<T, K, W, OUTPUTS>(args, carries, cut.first, own_end);
            sweep<T, K, W>(args, carries, pass.begin, cut.first);
        }
        if (!pass.closes) return;
        if (OUTPUTS) args.sums.outputs[last_row] += carry_sum(carries);
        end<T, K, W>(args, last_row, carries);
    }
};

}  // namespace

bool synvolve_forward(SynvolveArgs<float> const& args) { return Schedule(Forward<float>(args)).run(); }
bool synvolve_forward(SynvolveArgs<double> const& args) { return Schedule(Forward<double>(args)).run(); }
bool synvolve_backward(SynvolveBackwardArgs<float> const& args) { return Schedule(Backward<float>(args)).run(); }
bool synvolve_backward(SynvolveBackwardArgs<double> const& args) { return Schedule(Backward<double>(args)).run(); }

}  // namespace SYNV_ISA
}  // namespace synv
