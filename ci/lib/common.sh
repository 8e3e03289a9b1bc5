# Shared by the scripts in ci/: where things are, and how they speak.
# shellcheck shell=bash

CI_LIB=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # not every script looks at it
REPO=$(cd -- "$CI_LIB/../.." && pwd)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() { # die STATUS MESSAGE...
    local status=$1
    shift
    say "$*"
    exit "$status"
}

# RUSTFLAGS, pkg-config and cargo's runners part their words at blanks.
[[ $REPO${CARGO_TARGET_DIR:-} != *[[:space:]]* ]] ||
    die 2 "the paths of the checkout and of CARGO_TARGET_DIR must have no blanks: ${CARGO_TARGET_DIR:+$CARGO_TARGET_DIR, }$REPO"

have() { command -v "$1" >/dev/null 2>&1; }

# Ubuntu's newer compilers have their version in their names: the newest is taken, if the plain one is missing or older.
use_versioned_cargo() {
    local newest own=0
    # Most machines have none, and need not have the tools below.
    compgen -c cargo-1. >/dev/null || return 0
    newest=$(compgen -c cargo-1. | sort -uVr | grep -E '^cargo-1\.[0-9]+$' | head -n 1) || true
    [[ $newest ]] || return 0
    [[ $(command cargo --version 2>/dev/null) =~ ^cargo\ 1\.([0-9]+) ]] && own=${BASH_REMATCH[1]}
    NDCOMPAT_RUST=${newest#cargo-}
    ((${NDCOMPAT_RUST#1.} > own)) || return 0
    export NDCOMPAT_RUST
    cargo() { RUSTC=rustc-$NDCOMPAT_RUST RUSTDOC=rustdoc-$NDCOMPAT_RUST "cargo-$NDCOMPAT_RUST" "$@"; }
    rustc() { "rustc-$NDCOMPAT_RUST" "$@"; }
    export -f cargo rustc
}
use_versioned_cargo

# release_flags: lets the compiler name no folder of this machine in what is released, nor in what is measured, so that both
# share what is compiled.
release_flags() {
    local home=${CARGO_HOME:-${HOME:-/root}/.cargo}
    export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$REPO=/ndcompat --remap-path-prefix=$home/registry/src=/crates"
    RUSTFLAGS+=" --remap-path-prefix=$(rustc --print sysroot)/lib/rustlib/src/rust=/rust"
    RUSTFLAGS=${RUSTFLAGS# }
}

# help ARGUMENT...: for --help, prints the comment at the head of the script, which is its manual, and ends.
help() {
    [[ ${1:-} == --help || ${1:-} == -h ]] || return 0
    awk 'NR > 1 && !/^#/ {exit} NR > 1 && !/^# shellcheck/ {sub(/^# ?/, ""); print}' "${BASH_SOURCE[-1]}"
    exit 0
}

# os FIELD: of this machine's distribution.
os() {
    sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" /etc/os-release
}
