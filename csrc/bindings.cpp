// The Python module synvolution._kernels: addresses and sizes in, the best kernels of this machine called.
//
// Shapes, types and devices are checked in Python (synvolution/ops) before an address gets here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "kernels.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace nb = nanobind;

namespace {

// The kernels of one instruction set for one type. A new kernel adds a line here and one in SYNV_KERNELS.
template <class T> struct KernelsOf {
    bool (*chain_forward)(synv::ChainArgs<T> const&);
    bool (*chain_backward)(synv::ChainBackwardArgs<T> const&);
    bool (*synvolve_forward)(synv::SynvolveArgs<T> const&);
    bool (*synvolve_backward)(synv::SynvolveBackwardArgs<T> const&);
    bool (*gru_forward)(synv::GruForwardArgs<T> const&);
    bool (*gru_backward)(synv::GruBackwardArgs<T> const&);
    bool (*dropout)(synv::DropoutArgs<T> const&);
    bool (*gate_forward)(synv::GateArgs<T> const&);
    bool (*gate_backward)(synv::GateBackwardArgs<T> const&);
    bool (*norm_forward)(synv::NormArgs<T> const&);
    bool (*norm_backward)(synv::NormBackwardArgs<T> const&);
    bool (*means_forward)(synv::MeansArgs<T> const&);
    bool (*means_backward)(synv::MeansBackwardArgs<T> const&);
};

struct Kernels {
    char const* name;
    int bytes;  // of a vector
    bool (*supported)();
    KernelsOf<float> floats;
    KernelsOf<double> doubles;
    template <class T> KernelsOf<T> const& of() const {
        if constexpr (sizeof(T) == sizeof(float)) return floats;
        else return doubles;
    }
};

#define SYNV_KERNELS(ISA)                                                                                   \
    {                                                                                                       \
        synv::ISA::chain_forward, synv::ISA::chain_backward, synv::ISA::synvolve_forward,                   \
            synv::ISA::synvolve_backward, synv::ISA::gru_forward, synv::ISA::gru_backward, synv::ISA::dropout, \
            synv::ISA::gate_forward, synv::ISA::gate_backward, synv::ISA::norm_forward,                     \
            synv::ISA::norm_backward, synv::ISA::means_forward, synv::ISA::means_backward                   \
    }
#define SYNV_TABLE(ISA, BYTES) \
    Kernels { #ISA, BYTES, ISA##_supported, SYNV_KERNELS(ISA), SYNV_KERNELS(ISA) }

bool plain_supported() { return true; }

#if defined(SYNV_X86_KERNELS)
// These tests include the operating system's support of the wider registers.
bool avx2_supported() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool avx512_supported() {
    return avx2_supported() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
Kernels const TABLE[] = {SYNV_TABLE(avx512, 64), SYNV_TABLE(avx2, 32), SYNV_TABLE(plain, 16)};
#else
Kernels const TABLE[] = {SYNV_TABLE(plain, 16)};
#endif

Kernels const* best() {
    Kernels const* choice = TABLE;
    while (!choice->supported()) ++choice;  // the last one, plain, always is
    return choice;
}

Kernels const* active = nullptr;

void set_isa(std::string const& name) {
    for (Kernels const& kernels : TABLE) {
        if (name != kernels.name) continue;
        if (!kernels.supported()) throw std::invalid_argument("this machine does not support '" + name + "'");
        active = &kernels;
        return;
    }
    throw std::invalid_argument("unknown instruction set '" + name + "': see supported_isas()");
}

nb::list supported_isas() {
    nb::list names;
    for (Kernels const& kernels : TABLE) {
        if (kernels.supported()) names.append(kernels.name);
    }
    return names;
}

// Asks for large pages for a big, fresh tensor: touching it for the first time costs as much as computing it else.
void advise_large_pages(std::uintptr_t address, std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    std::uintptr_t const page = 1u << 21;
    std::uintptr_t const begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // advice: failing is fine
#else
    (void)address, (void)bytes;
#endif
}

template <class T> T* pointer(std::uintptr_t address) { return reinterpret_cast<T*>(address); }

template <class Args> void run(bool (*kernel)(Args const&), Args const& args) {
    nb::gil_scoped_release release;
    if (!kernel(args)) throw std::bad_alloc();
}

using Address = std::uintptr_t;
using Size = std::ptrdiff_t;

// The active kernels, or those with shorter vectors if only so there is a vector of features for every thread.
template <class T> KernelsOf<T> const& kernels_for(Size items, Size features, int threads) {
    Kernels const* choice = active;
#if defined(SYNV_X86_KERNELS)
    Size const lanes = choice->bytes / Size(sizeof(T));
    bool const idle = items * ((features + lanes - 1) / lanes) < threads && features > lanes / 2;
    if (idle && choice == &TABLE[0] && TABLE[1].supported()) choice = &TABLE[1];
#endif
    return choice->of<T>();
}

// Sizes: B, N, D.
template <class T>
void chain_forward(Size batch, Size rows, Size features, int threads, bool upper, Address x, Address angles, Address y) {
    synv::ChainArgs<T> const args{batch, rows, features, threads, upper, pointer<T const>(x), pointer<T const>(angles),
                                  pointer<T>(y)};
    run(kernels_for<T>(batch, features, threads).chain_forward, args);
}

template <class T>
void chain_backward(Size batch, Size rows, Size features, int threads, bool upper, Address y, Address grad,
                    Address angles, Address x, Address grad_x, Address grad_angles) {
    synv::ChainBackwardArgs<T> const args{batch, rows, features, threads, upper, pointer<T const>(y),
                                          pointer<T const>(grad), pointer<T const>(angles), pointer<T>(x),
                                          pointer<T>(grad_x), pointer<T>(grad_angles)};
    run(kernels_for<T>(batch, features, threads).chain_backward, args);
}

// Sizes: B, H, N, D.
template <class T>
void synvolve_forward(Size batch, Size heads, Size rows, Size features, int threads, Address v, Address lower,
                      Address upper, Address phase, Address out) {
    synv::SynvolveArgs<T> const args{batch, heads, rows, features, threads, pointer<T const>(v),
                                     pointer<T const>(lower), pointer<T const>(upper), pointer<T const>(phase),
                                     pointer<T>(out)};
    run(kernels_for<T>(batch * heads, features / heads, threads).synvolve_forward, args);
}

template <class T>
void synvolve_backward(Size batch, Size heads, Size rows, Size features, int threads, Address grad, Address out,
                       Address lower, Address upper, Address phase, Address grad_v, Address grad_lower,
                       Address grad_upper, Address grad_phase) {
    synv::SynvolveBackwardArgs<T> const args{batch, heads, rows, features, threads, pointer<T const>(grad),
                                             pointer<T const>(out), pointer<T const>(lower), pointer<T const>(upper),
                                             pointer<T const>(phase), pointer<T>(grad_v), pointer<T>(grad_lower),
                                             pointer<T>(grad_upper), pointer<T>(grad_phase)};
    run(kernels_for<T>(batch * heads, features / heads, threads).synvolve_backward, args);
}

// The GRU's arrays come by name: addresses, and sequences as (address, stride of the batch axis, of the step axis).
template <class T> T* array(nb::dict const& arrays, char const* name) {
    return pointer<T>(nb::cast<std::uintptr_t>(arrays[name]));
}

template <class T> synv::Sequence<T> sequence(nb::dict const& arrays, char const* name) {
    nb::tuple const parts = nb::cast<nb::tuple>(arrays[name]);
    return {pointer<T>(nb::cast<std::uintptr_t>(parts[0])), nb::cast<Size>(parts[1]), nb::cast<Size>(parts[2])};
}

// Sizes come as (B, N, D, H, threads).
template <class Args> void set_sizes(Args& args, nb::tuple const& sizes) {
    args.batch = nb::cast<std::ptrdiff_t>(sizes[0]);
    args.steps = nb::cast<std::ptrdiff_t>(sizes[1]);
    args.inputs = nb::cast<std::ptrdiff_t>(sizes[2]);
    args.hidden = nb::cast<std::ptrdiff_t>(sizes[3]);
    args.threads = nb::cast<int>(sizes[4]);
}

template <class T> void gru_forward(nb::tuple const& sizes, nb::dict const& a) {
    synv::GruForwardArgs<T> args;
    set_sizes(args, sizes);
    args.x = sequence<T const>(a, "x");
    args.h0 = array<T const>(a, "h0");
    args.w_ih = array<T const>(a, "w_ih");
    args.w_hh = array<T const>(a, "w_hh");
    args.b_ih = array<T const>(a, "b_ih");
    args.b_hh = array<T const>(a, "b_hh");
    args.mask = array<std::uint8_t const>(a, "mask");
    args.out = sequence<T>(a, "out");
    args.h_n = array<T>(a, "h_n");
    args.gates = sequence<T>(a, "gates");
    run(active->of<T>().gru_forward, args);
}

template <class T> void gru_backward(nb::tuple const& sizes, nb::dict const& a) {
    synv::GruBackwardArgs<T> args;
    set_sizes(args, sizes);
    args.grad_out = sequence<T const>(a, "grad_out");
    args.grad_h_n = array<T const>(a, "grad_h_n");
    args.x = sequence<T const>(a, "x");
    args.out = sequence<T const>(a, "out");
    args.gates = sequence<T const>(a, "gates");
    args.h0 = array<T const>(a, "h0");
    args.w_ih = array<T const>(a, "w_ih");
    args.w_hh = array<T const>(a, "w_hh");
    args.mask = array<std::uint8_t const>(a, "mask");
    args.grad_x = sequence<T>(a, "grad_x");
    args.grad_h0 = array<T>(a, "grad_h0");
    args.grad_w_ih = array<T>(a, "grad_w_ih");
    args.grad_w_hh = array<T>(a, "grad_w_hh");
    args.grad_b_ih = array<T>(a, "grad_b_ih");
    args.grad_b_hh = array<T>(a, "grad_b_hh");
    run(active->of<T>().gru_backward, args);
}

// Elements come as (count, threads, seed, rate), a rate of 0 for no dropout.
synv::Elements elements(nb::tuple const& of) {
    return {nb::cast<Size>(of[0]), nb::cast<int>(of[1]), {nb::cast<std::uint64_t>(of[2]), nb::cast<double>(of[3])}};
}

template <class T> void dropout(nb::tuple const& of, Address x, Address out) {
    run(active->of<T>().dropout, synv::DropoutArgs<T>{elements(of), pointer<T const>(x), pointer<T>(out)});
}

template <class T> void gate_forward(nb::tuple const& of, Address a, Address b, Address out) {
    synv::GateArgs<T> const args{elements(of), pointer<T const>(a), pointer<T const>(b), pointer<T>(out)};
    run(active->of<T>().gate_forward, args);
}

template <class T>
void gate_backward(nb::tuple const& of, Address grad, Address a, Address b, Address grad_a, Address grad_b) {
    synv::GateBackwardArgs<T> const args{elements(of),        pointer<T const>(grad), pointer<T const>(a),
                                         pointer<T const>(b), pointer<T>(grad_a),     pointer<T>(grad_b)};
    run(active->of<T>().gate_backward, args);
}

// Norms come as (rows, features, joined, threads, source, scale, zeta, seed, rate).
template <class T> synv::NormArgs<T> norm_args(nb::tuple const& of, Address x, Address other, Address out) {
    return {nb::cast<Size>(of[0]),
            nb::cast<Size>(of[1]),
            nb::cast<Size>(of[2]),
            nb::cast<int>(of[3]),
            synv::NormSource(nb::cast<int>(of[4])),
            pointer<T const>(x),
            pointer<T const>(other),
            T(nb::cast<double>(of[5])),
            T(nb::cast<double>(of[6])),
            {nb::cast<std::uint64_t>(of[7]), nb::cast<double>(of[8])},
            pointer<T>(out)};
}

template <class T> void norm_forward(nb::tuple const& of, Address x, Address other, Address out) {
    run(active->of<T>().norm_forward, norm_args<T>(of, x, other, out));
}

template <class T>
void norm_backward(nb::tuple const& of, Address grad, Address x, Address other, Address grad_x, Address grad_other,
                   Address grad_scale, Address grad_zeta) {
    synv::NormBackwardArgs<T> const args{norm_args<T>(of, x, other, 0), pointer<T const>(grad), pointer<T>(grad_x),
                                         pointer<T>(grad_other), pointer<T>(grad_scale), pointer<T>(grad_zeta)};
    run(active->of<T>().norm_backward, args);
}

template <class T>
void means_forward(Size rows, Size groups, Size size, bool unit, int threads, Address x, Address out) {
    synv::MeansArgs<T> const args{rows, groups, size, unit, threads, pointer<T const>(x), pointer<T>(out)};
    run(active->of<T>().means_forward, args);
}

template <class T>
void means_backward(Size rows, Size groups, Size size, bool unit, int threads, Address grad, Address x,
                    Address grad_x) {
    synv::MeansArgs<T> const means{rows, groups, size, unit, threads, pointer<T const>(x), nullptr};
    run(active->of<T>().means_backward, synv::MeansBackwardArgs<T>{means, pointer<T const>(grad), pointer<T>(grad_x)});
}

bool has_openmp() {
#if defined(SYNV_OPENMP)
    return true;
#else
    return false;
#endif
}

}  // namespace

NB_MODULE(_kernels, m) {
    active = best();
    m.def("isa", [] { return std::string(active->name); }, "Instruction set whose kernels are in use.");
    m.def("set_isa", &set_isa, "Use the kernels of this instruction set (for tests).");
    m.def("supported_isas", &supported_isas, "Instruction sets this machine supports, best first.");
    m.def("has_openmp", &has_openmp, "Whether the kernels use threads.");
    m.def("advise_large_pages", &advise_large_pages, "Ask for large pages for (address, bytes); no promise.");
    // what the arguments are: kernels.hpp
#define SYNV_BIND(NAME)                     \
    m.def(#NAME "_float32", &NAME<float>);  \
    m.def(#NAME "_float64", &NAME<double>);
    SYNV_BIND(chain_forward)
    SYNV_BIND(chain_backward)
    SYNV_BIND(synvolve_forward)
    SYNV_BIND(synvolve_backward)
    SYNV_BIND(gru_forward)
    SYNV_BIND(gru_backward)
    SYNV_BIND(dropout)
    SYNV_BIND(gate_forward)
    SYNV_BIND(gate_backward)
    SYNV_BIND(norm_forward)
    SYNV_BIND(norm_backward)
    SYNV_BIND(means_forward)
    SYNV_BIND(means_backward)
}
