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

    Coefficients(Cutter& cutter, std::ptrdiff_t n)
        : e0(cutter.array<T>(2 * n)), e1(cutter.array<T>(2 * n)), phi(cutter.array<T>(2 * n)),
          r1(cutter.array<T>(2 * n)), r2(cutter.array<T>(2 * n)), angle(cutter.array<double>(n)) {}

    void set(T const* lower, T const* upper, T const* phase, std::ptrdiff_t n) const {
        fill(angle, n, 0.0);
        upper_phases(upper, n, angle, nullptr);
        cosines_and_sines(angle, n, e0);
        fill(angle, n, 0.0);
        upper_phases(upper, n, nullptr, angle);
        lower_phases(lower, n, angle, nullptr);
        cosines_and_sines(angle, n, e1);
        for (std::ptrdiff_t i = 0; i < n; ++i) angle[i] = double(phase[i]);
        cosines_and_sines(angle, n, phi);
        real_rotations(upper, n - 1, r1);
        real_rotations(lower, n - 1, r2);
    }
};

// Sums of an item over its features: of a chain minus those of its adjoint, which is all that the gradients need.
// Rows before R1, between R1 and R2, after R2; then rotations and carry of either chain.
enum { BEFORE, BETWEEN, AFTER, ROTATIONS1, ROTATIONS2, CARRIES1, CARRIES2, SUMS };

template <class T> struct Forward : SynvolveArgs<T> {
    using Value = T;
    using Shared = Coefficients<T>;
    using Own = Nothing;
    static constexpr int PLANES = 2;
    explicit Forward(SynvolveArgs<T> const& args) : SynvolveArgs<T>(args) {}

    void prepare(Shared const& c, std::ptrdiff_t item) const {
        std::ptrdiff_t const n = this->rows;
        c.set(this->lower + item * 3 * (n - 1), this->upper + item * 3 * (n - 1), this->phase + item * n, n);
    }
    void finish(Shared const&, Own const&, std::ptrdiff_t) const {}

    template <int K, Place FAR>
    void tile(Shared const& c, Own const&, T* scratch, std::ptrdiff_t item, std::ptrdiff_t first,
              std::ptrdiff_t count) const {
        std::ptrdiff_t const n = this->rows, d = this->features, width = K * WIDTH<T>;
        std::ptrdiff_t const at = item / this->heads * n * 2 * d + first;
        Rows<T const> const input{this->v + at, 2 * d, d}, back{scratch, 2 * width, width};
        Rows<T> const output{this->out + at, 2 * d, d}, work{scratch, 2 * width, width};
        SweepArgs<T, 1> s{n, count, {input}, {work}, c.e0, nullptr, c.r1, {}};
        sweep_one<T, K, Way<false, 1, 1, 0, FAR, Place::SCRATCH>>(s);
        s = {n, count, {back}, {work}, c.e1, nullptr, c.r2, {}};
        sweep_one<T, K, Way<true, -1, 1, 0, Place::SCRATCH, Place::SCRATCH>>(s);
        s.phase_in = c.phi;
        sweep_one<T, K, Way<false, -1, 1, 0, Place::SCRATCH, Place::SCRATCH>>(s);
        s = {n, count, {back}, {output}, c.e1, c.e0, c.r1, {}};
        sweep_one<T, K, Way<true, 1, -1, -1, Place::SCRATCH, FAR>>(s);
    }
};

template <class T> struct Backward : SynvolveBackwardArgs<T> {
    using Value = T;
    using Shared = Coefficients<T>;
    using Own = RowSums<T, SUMS>;
    static constexpr int PLANES = 4;
    explicit Backward(SynvolveBackwardArgs<T> const& args) : SynvolveBackwardArgs<T>(args) {}

    void prepare(Shared const& c, std::ptrdiff_t item) const {
        std::ptrdiff_t const n = this->rows;
        c.set(this->lower + item * 3 * (n - 1), this->upper + item * 3 * (n - 1), this->phase + item * n, n);
    }

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
    void tile(Shared const& c, Own const& sums, T* scratch, std::ptrdiff_t item, std::ptrdiff_t first,
              std::ptrdiff_t count) const {
        std::ptrdiff_t const n = this->rows, d = this->features, width = K * WIDTH<T>;
        std::ptrdiff_t const at = item / this->heads * n * 2 * d + first;
        T* const scratch_g = scratch + 2 * width;
        Rows<T const> const x{this->out + at, 2 * d, d}, g{this->grad + at, 2 * d, d};
        Rows<T const> const back_x{scratch, 4 * width, width}, back_g{scratch_g, 4 * width, width};
        Rows<T> const work_x{scratch, 4 * width, width}, work_g{scratch_g, 4 * width, width};
        Rows<T> const result{this->grad_v + at, 2 * d, d}, unwanted{nullptr, 0, 0};
        Sums<T> const first_chain{sums.of[BEFORE], nullptr, sums.of[ROTATIONS1], sums.of[CARRIES1], T(-1)};
        SweepArgs<T, 2> s{n, count, {x, g}, {work_x, work_g}, c.e0, nullptr, c.r1, first_chain};
        sweep_two<T, K, Way<false, 1, 1, 0, FAR, Place::SCRATCH>, false>(s);
        s = {n, count, {back_x, back_g}, {work_x, work_g}, c.e1, nullptr, c.r2,
             {sums.of[BETWEEN], nullptr, sums.of[ROTATIONS2], sums.of[CARRIES2], T(-1)}};
        sweep_two<T, K, Way<true, -1, 1, 0, Place::SCRATCH, Place::SCRATCH>, false>(s);
        s.phase_in = c.phi;
        s.sums = {sums.of[AFTER], nullptr, sums.of[ROTATIONS2], sums.of[CARRIES2], T(1)};
        sweep_two<T, K, Way<false, -1, -1, 0, Place::SCRATCH, Place::SCRATCH>, false>(s);
        s = {n, count, {back_x, back_g}, {unwanted, result}, c.e1, c.e0, c.r1,
             {sums.of[BETWEEN], sums.of[BEFORE], sums.of[ROTATIONS1], sums.of[CARRIES1], T(1)}};
        sweep_two<T, K, Way<true, 1, -1, -1, Place::SCRATCH, FAR>, true>(s);
    }
};

}  // namespace

bool synvolve_forward(SynvolveArgs<float> const& args) { return Schedule(Forward<float>(args)).run(); }
bool synvolve_forward(SynvolveArgs<double> const& args) { return Schedule(Forward<double>(args)).run(); }
bool synvolve_backward(SynvolveBackwardArgs<float> const& args) { return Schedule(Backward<float>(args)).run(); }
bool synvolve_backward(SynvolveBackwardArgs<double> const& args) { return Schedule(Backward<double>(args)).run(); }

}  // namespace SYNV_ISA
}  // namespace synv
