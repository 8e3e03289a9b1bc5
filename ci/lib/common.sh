# Shared by the scripts in ci/: where things are, and how they speak.
# shellcheck shell=bash

CI_LIB=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
REPO=$(cd -- "$CI_LIB/../.." && pwd)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() { # die STATUS MESSAGE...
    local status=$1
    shift
    say "$*"
    exit "$status"
}

have() { command -v "$1" >/dev/null 2>&1; }
