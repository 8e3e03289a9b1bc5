# How the library is compiled under one of the compiler's sanitizers: ci/sanitize and ci/fuzz share what is built so.
# shellcheck shell=bash
#
# The sanitizers are unstable parts of Rust's compiler; RUSTC_BOOTSTRAP opens them in a stable one. ThreadSanitizer sees
# only what it compiled itself, so for it the standard library is built anew, from its source.

MACHINE=$(uname -m)-unknown-linux-gnu

# sanitizer_runtime SANITIZER: the compiler's own, or that of clang, where rustc has come without.
sanitizer_runtime() {
    local found
    found=$(find "$(rustc --print target-libdir)" -name "librustc-*_rt.${1:0:1}san.a")
    [[ -n $found ]] || found=$(find /usr/lib/llvm-*/lib/clang -name "libclang_rt.${1:0:1}san-$(uname -m).a" | sort -V | tail -n 1)
    [[ -n $found ]] || die 2 "no runtime of the $1 sanitizer: run ci/setup test"
    echo "$found"
}

# compile_for SANITIZER: sets up cargo, whose options are CARGO then. AddressSanitizer's code also counts what is reached, which
# costs little, and which the fuzzer wants.
compile_for() {
    RUNTIME=$(sanitizer_runtime "$1")
    # What is built here is seldom built a second time.
    export RUNTIME RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0
    export RUSTFLAGS="-Zsanitizer=$1 -Zexternal-clangrt -Clinker=$CI_LIB/sanitized-link"
    CARGO_TARGET_DIR=$(readlink -m "${CARGO_TARGET_DIR:-$REPO/target}")/sanitize-$1
    export CARGO_TARGET_DIR
    CARGO=(--locked --quiet --target "$MACHINE")
    case $1 in
        address)
            RUSTFLAGS+=" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3"
            RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
            ;;
        thread) CARGO+=(-Zbuild-std) ;;
    esac
}

# build_library: libndcompat. The programs contain the runtime, too, and show its functions here. The library is to call its own.
build_library() {
    cargo rustc "${CARGO[@]}" -p ndcompat-ffi --crate-type cdylib -- -Clink-arg=-Wl,-Bsymbolic
    export NDCOMPAT_LIBRARY=$CARGO_TARGET_DIR/$MACHINE/debug/libndcompat.so
}
