#!/bin/sh
# Build the kernels with AddressSanitizer and UndefinedBehaviorSanitizer and run them at odd sizes, every fresh byte NaN.
# Then once more with the portable vectors that compilers without vector extensions get. Takes a few minutes.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiler=${CXX:-g++}
flags="-std=c++17 -g1 -O1 -Wall -Wextra -fopenmp -fno-math-errno -fno-trapping-math -ffp-contract=fast
       -fsanitize=address,undefined -fno-sanitize-recover=undefined"

build_and_run() {  # driver, kernel sources, label, extra flags...
    driver=$1
    sources=$2
    label=$3
    shift 3
    objects=""
    define=""
    for isa in plain avx2 avx512; do
        case $isa in
            plain) isa_flags="" ;;
            avx2) isa_flags="-mavx2 -mfma" ;;
            avx512) isa_flags="-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma" ;;
        esac
        case $isa-$(uname -m) in
            plain-* | *-x86_64) ;;
            *) continue ;;
        esac
        if [ "$isa" = avx512 ]; then define="-DSYNV_X86_KERNELS"; fi
        for source in $sources; do
            # shellcheck disable=SC2086
            "$compiler" $flags $isa_flags "$@" -DSYNV_ISA=$isa -c "$root/csrc/$source.cpp" -o "$work/$source.$isa.o"
            objects="$objects $work/$source.$isa.o"
        done
    done
    # shellcheck disable=SC2086
    "$compiler" $flags $define "$@" "$root/tests/csrc/$driver.cpp" $objects -o "$work/$driver"
    echo "$driver, $label:"
    ASAN_OPTIONS=max_malloc_fill_size=1000000000:malloc_fill_byte=255:detect_leaks=1 "$work/$driver"
}

build_and_run sanitize_synvolve "givens synvolve" "vector extensions"
build_and_run sanitize_synvolve "givens synvolve" "portable vectors" -DSYNV_NO_VECTOR_EXTENSIONS
build_and_run sanitize_gru gru "vector extensions"
build_and_run sanitize_gru gru "portable vectors" -DSYNV_NO_VECTOR_EXTENSIONS
build_and_run sanitize_rows "gate means norm" "vector extensions"
build_and_run sanitize_rows "gate means norm" "portable vectors" -DSYNV_NO_VECTOR_EXTENSIONS
