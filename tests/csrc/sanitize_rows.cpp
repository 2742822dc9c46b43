// Calls the kernels of norms, gate, dropout and means of sines at odd sizes on heap buffers of exactly the right size, for
// every instruction set of this machine. Built with sanitizers by tests/sanitize.sh, which also fills fresh memory with
// NaN: a result must have none.
#include "buffers.hpp"

namespace {

struct Case {
    std::ptrdiff_t rows, features;
    int threads;
    double rate;
};

template <class T> struct Functions {
    bool (*dropout)(synv::DropoutArgs<T> const&);
    bool (*gate_forward)(synv::GateArgs<T> const&);
    bool (*gate_backward)(synv::GateBackwardArgs<T> const&);
    bool (*norm_forward)(synv::NormArgs<T> const&);
    bool (*norm_backward)(synv::NormBackwardArgs<T> const&);
    bool (*means_forward)(synv::MeansArgs<T> const&);
    bool (*means_backward)(synv::MeansBackwardArgs<T> const&);
};

template <class T> double run_elements(Case const& c, Functions<T> const& functions) {
    std::ptrdiff_t const n = c.rows * c.features;
    auto a = random<T>(n, T(30)), b = random<T>(n, T(3)), grad = random<T>(n);
    auto dropped = empty<T>(n), out = empty<T>(n), grad_a = empty<T>(n), grad_b = empty<T>(n);
    synv::Elements const elements{n, c.threads, {std::uint64_t(n) << 40 | 77u, c.rate}};
    bool done = functions.dropout({elements, a.get(), dropped.get()});
    done = done && functions.gate_forward({elements, a.get(), b.get(), out.get()});
    done = done && functions.gate_backward({elements, grad.get(), a.get(), b.get(), grad_a.get(), grad_b.get()});
    return done ? total(dropped, n) + total(out, n) + total(grad_a, n) + total(grad_b, n) : double(NAN);
}

template <class T> double run_norm(Case const& c, Functions<T> const& functions, synv::NormSource source) {
    bool const mixed = source == synv::NormSource::MIXED, other = mixed || source == synv::NormSource::JOINED;
    std::ptrdiff_t const R = c.rows, D = c.features, joined = mixed ? 2 * D : other ? (D + 1) / 2 : 0;
    auto x = random<T>(R * D, T(2)), y = random<T>(R * joined), grad = random<T>(R * D);
    auto out = empty<T>(R * D), grad_x = empty<T>(R * D), grad_y = empty<T>(R * joined), sums = empty<T>(2);
    synv::NormArgs<T> const args{R, D, joined, c.threads, source, x.get(), other ? y.get() : nullptr, T(1.7), T(0.3),
                                 {5, c.rate}, out.get()};
    if (!functions.norm_forward(args)) return NAN;
    if (!functions.norm_backward({args, grad.get(), grad_x.get(), mixed ? grad_y.get() : nullptr, sums.get(), sums.get() + 1}))
        return NAN;
    return total(out, R * D) + total(grad_x, R * D) + total(sums, 2) + (mixed ? total(grad_y, R * joined) : 0);
}

template <class T> double run_means(Case const& c, Functions<T> const& functions, bool unit) {
    std::ptrdiff_t const size = c.features % 3 ? 1 : 3, groups = c.features / size, n = c.rows * c.features;
    auto x = random<T>(n, T(40)), grad = random<T>(c.rows * groups), out = empty<T>(c.rows * groups), grad_x = empty<T>(n);
    synv::MeansArgs<T> const args{c.rows, groups, size, unit, c.threads, x.get(), out.get()};
    if (!functions.means_forward(args) || !functions.means_backward({args, grad.get(), grad_x.get()})) return NAN;
    return total(out, c.rows * groups) + total(grad_x, n);
}

// Sum of the absolute values of all results: the same for every instruction set, up to rounding.
template <class T> double run(Case const& c, Functions<T> const& functions) {
    state = unsigned(c.rows * 31 + c.features);
    double sum = run_elements(c, functions);
    for (auto source : {synv::NormSource::ALONE, synv::NormSource::JOINED, synv::NormSource::MIXED, synv::NormSource::SINE})
        sum += run_norm(c, functions, source);
    return sum + run_means(c, functions, false) + run_means(c, functions, true);
}

int failures = 0;

#define FUNCTIONS(ISA, T)                                                                                              \
    Functions<T> {                                                                                                     \
        synv::ISA::dropout, synv::ISA::gate_forward, synv::ISA::gate_backward, synv::ISA::norm_forward,                \
            synv::ISA::norm_backward, synv::ISA::means_forward, synv::ISA::means_backward                              \
    }

template <class T>
void compare(Case const& c, Functions<T> const& functions, Functions<T> const& plain, char const* name, double tolerance) {
    double const given = run(c, functions), expected = run(c, plain);
    if (std::abs(given - expected) <= tolerance * expected) return;
    ++failures;
    std::printf("%s R=%td D=%td threads=%d rate=%g: %.15g, expected %.15g\n", name, c.rows, c.features, c.threads, c.rate,
                given, expected);
}

#define RUN_ISA(ISA, c)                                                                         \
    compare(c, FUNCTIONS(ISA, float), FUNCTIONS(plain, float), #ISA " float", 1e-4);            \
    compare(c, FUNCTIONS(ISA, double), FUNCTIONS(plain, double), #ISA " double", 1e-11)

void run_all(Case const& c) {
    RUN_ISA(plain, c);
#if defined(SYNV_X86_KERNELS)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) { RUN_ISA(avx2, c); }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        RUN_ISA(avx512, c);
    }
#endif
}

}  // namespace

int main() {
    std::ptrdiff_t const widths[] = {1, 3, 16, 17, 33, 100, 2500}, heights[] = {0, 1, 7, 70, 3000};
    int cases = 0;
    for (std::ptrdiff_t D : widths) {
        for (std::ptrdiff_t R : heights) {
            if (R * D > 200000) continue;
            double const rates[] = {0, 0.1, 1};
            run_all({R, D, cases % 3 + 1, rates[cases / 3 % 3]});
            ++cases;
        }
    }
    std::printf("%d cases, %d failures\n", cases, failures);
    return failures != 0;
}
