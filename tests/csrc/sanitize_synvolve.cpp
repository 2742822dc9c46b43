// Calls the chain and synvolve kernels at odd sizes on heap buffers of exactly the right size, for every instruction
// set of this machine. Built with sanitizers by tests/sanitize.sh, which fills fresh memory with NaN: results have none.
#include "buffers.hpp"

namespace {

template <class T> struct Functions {
    bool (*chain)(synv::ChainArgs<T> const&);
    bool (*chain_backward)(synv::ChainBackwardArgs<T> const&);
    bool (*synvolve)(synv::SynvolveArgs<T> const&);
    bool (*synvolve_backward)(synv::SynvolveBackwardArgs<T> const&);
};

struct Case {
    std::ptrdiff_t batch, heads, rows, features;
    int threads;
};

// Sum of the absolute values of all results: the same for every instruction set, up to rounding.
template <class T> double run(Case const& c, Functions<T> const& call) {
    std::ptrdiff_t const B = c.batch, H = c.heads, N = c.rows, D = c.features, signal = B * N * 2 * D;
    std::ptrdiff_t const angles = B * H * (N - 1) * 3, one = B * (N - 1) * 3, phases = B * H * N;
    state = unsigned(B + N * 7 + D * 31 + H * 101);
    auto v = random<T>(signal), grad = random<T>(signal), lower = random<T>(angles, T(4)), upper = random<T>(angles, T(4));
    auto phase = random<T>(phases, T(4));
    auto out = empty<T>(signal), grad_v = empty<T>(signal), grad_lower = empty<T>(angles), grad_upper = empty<T>(angles);
    auto grad_phase = empty<T>(phases);
    if (!call.synvolve({B, H, N, D, c.threads, v.get(), lower.get(), upper.get(), phase.get(), out.get()})) return NAN;
    if (!call.synvolve_backward({B, H, N, D, c.threads, grad.get(), out.get(), lower.get(), upper.get(), phase.get(),
                                 grad_v.get(), grad_lower.get(), grad_upper.get(), grad_phase.get()}))
        return NAN;
    double sum = total(out, signal) + total(grad_v, signal) + total(grad_lower, angles) + total(grad_upper, angles) +
                 total(grad_phase, phases);
    for (bool is_upper : {true, false}) {
        auto y = empty<T>(signal), x = empty<T>(signal), grad_x = empty<T>(signal), grad_angles = empty<T>(one);
        if (!call.chain({B, N, D, c.threads, is_upper, v.get(), lower.get(), y.get()})) return NAN;
        if (!call.chain_backward({B, N, D, c.threads, is_upper, y.get(), grad.get(), lower.get(), x.get(), grad_x.get(),
                                  grad_angles.get()}))
            return NAN;
        sum += total(y, signal) + total(x, signal) + total(grad_x, signal) + total(grad_angles, one);
    }
    return sum;
}

#define FUNCTIONS(ISA, T) \
    Functions<T> { synv::ISA::chain_forward, synv::ISA::chain_backward, synv::ISA::synvolve_forward, synv::ISA::synvolve_backward }

int failures = 0;

template <class T> void compare(Case const& c, Functions<T> const& functions, char const* name, double tolerance) {
    double const given = run(c, functions), expected = run(c, FUNCTIONS(plain, T));
    if (std::abs(given - expected) <= tolerance * expected) return;
    ++failures;
    std::printf("%s B=%td H=%td N=%td D=%td threads=%d: %.15g, expected %.15g\n", name, c.batch, c.heads, c.rows,
                c.features, c.threads, given, expected);
}

#define RUN_ISA(ISA, c)                                          \
    compare(c, FUNCTIONS(ISA, float), #ISA " float", 1e-5);      \
    compare(c, FUNCTIONS(ISA, double), #ISA " double", 1e-13)

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
    std::ptrdiff_t const features[] = {1, 3, 16, 17, 32, 45}, batches[] = {0, 1, 3}, lengths[] = {1, 2, 16, 17, 70};
    int cases = 0;
    for (std::ptrdiff_t D : features) {
        for (std::ptrdiff_t B : batches) {
            for (std::ptrdiff_t N : lengths) {
                std::ptrdiff_t const heads = cases % 2 + 1;
                run_all({B, heads, N, D * heads, cases % 3 + 1});
                ++cases;
            }
        }
    }
    run_all({1, 1, 6000, 3, 3});  // long enough to be cut into segments, shared by threads
    run_all({2, 1, 6000, 3, 2});
    cases += 2;
    std::printf("%d cases, %d failures\n", cases, failures);
    return failures != 0;
}
