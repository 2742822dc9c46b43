// Calls the GRU kernels at odd sizes on heap buffers of exactly the right size, for every instruction set of this
// machine. Built with sanitizers by tests/sanitize.sh, which also fills fresh memory with NaN: a result must have none.
#include "buffers.hpp"

namespace {

template <class T> struct Functions {
    bool (*forward)(synv::GruForwardArgs<T> const&);
    bool (*backward)(synv::GruBackwardArgs<T> const&);
};

struct Case {
    std::ptrdiff_t batch, steps, inputs, hidden;
    int threads;
    bool masked;
};

// Sum of the absolute values of all results: the same for every instruction set, up to rounding.
template <class T> double run(Case const& c, Functions<T> const& functions) {
    std::ptrdiff_t const B = c.batch, N = c.steps, D = c.inputs, H = c.hidden;
    state = unsigned(B + N * 7 + D * 31 + H * 101);
    auto x = random<T>(B * N * D), h0 = random<T>(B * H), w_ih = random<T>(3 * H * D), w_hh = random<T>(3 * H * H);
    auto b_ih = random<T>(3 * H), b_hh = random<T>(3 * H), grad_out = random<T>(B * N * H), grad_h_n = random<T>(B * H);
    auto mask = empty<std::uint8_t>(B * N);
    for (std::ptrdiff_t i = 0; i < B * N; ++i) mask[i] = next_random() >> 30 != 0;
    std::uint8_t const* const used = c.masked ? mask.get() : nullptr;
    auto out = empty<T>(B * N * H), h_n = empty<T>(B * H), gates = empty<T>(B * N * 4 * H);
    synv::GruForwardArgs<T> const f{B, N, D, H, c.threads, {x.get(), N * D, D}, h0.get(), w_ih.get(), w_hh.get(),
                                    b_ih.get(), b_hh.get(), used, {out.get(), N * H, H}, h_n.get(),
                                    {gates.get(), N * 4 * H, 4 * H}};
    if (!functions.forward(f)) return NAN;
    auto grad_x = empty<T>(B * N * D), grad_h0 = empty<T>(B * H), grad_w_ih = empty<T>(3 * H * D);
    auto grad_w_hh = empty<T>(3 * H * H), grad_b_ih = empty<T>(3 * H), grad_b_hh = empty<T>(3 * H);
    synv::GruBackwardArgs<T> const b{B, N, D, H, c.threads, {grad_out.get(), N * H, H}, grad_h_n.get(),
                                     {x.get(), N * D, D}, {out.get(), N * H, H}, {gates.get(), N * 4 * H, 4 * H},
                                     h0.get(), w_ih.get(), w_hh.get(), used, {grad_x.get(), N * D, D}, grad_h0.get(),
                                     grad_w_ih.get(), grad_w_hh.get(), grad_b_ih.get(), grad_b_hh.get()};
    if (!functions.backward(b)) return NAN;
    return total(out, B * N * H) + total(h_n, B * H) + total(gates, B * N * 4 * H) + total(grad_x, B * N * D) +
           total(grad_h0, B * H) + total(grad_w_ih, 3 * H * D) + total(grad_w_hh, 3 * H * H) + total(grad_b_ih, 3 * H) +
           total(grad_b_hh, 3 * H);
}

int failures = 0;

template <class T> void compare(Case const& c, Functions<T> const& functions, char const* name, double tolerance) {
    double const given = run(c, functions), expected = run(c, Functions<T>{synv::plain::gru_forward, synv::plain::gru_backward});
    if (std::abs(given - expected) <= tolerance * expected) return;
    ++failures;
    std::printf("%s B=%td N=%td D=%td H=%td threads=%d mask=%d: %.15g, expected %.15g\n", name, c.batch, c.steps, c.inputs,
                c.hidden, c.threads, c.masked, given, expected);
}

#define RUN_ISA(ISA, c)                                                                                    \
    compare(c, Functions<float>{synv::ISA::gru_forward, synv::ISA::gru_backward}, #ISA " float", 1e-5);    \
    compare(c, Functions<double>{synv::ISA::gru_forward, synv::ISA::gru_backward}, #ISA " double", 1e-13)

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
    std::ptrdiff_t const hiddens[] = {1, 3, 16, 17, 66}, batches[] = {0, 1, 2, 5, 19}, lengths[] = {1, 7, 70};
    int cases = 0;
    for (std::ptrdiff_t H : hiddens) {
        for (std::ptrdiff_t B : batches) {
            for (std::ptrdiff_t N : lengths) {
                int const threads = cases % 3 + 1;
                run_all({B, N, (H * 7) % 37 + 1, H, threads, cases / 3 % 2 == 0});
                ++cases;
            }
        }
    }
    std::printf("%d cases, %d failures\n", cases, failures);
    return failures != 0;
}
