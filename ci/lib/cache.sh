# Where the lab keeps what it has fetched and built, outside the checkout.
# shellcheck shell=bash

CACHE=${NDCOMPAT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ndcompat}

# build_once TARGET COMMAND...: makes TARGET (a file or folder in the cache) if it is not there. COMMAND gets the path of
# a temporary folder as its last argument and leaves its result there as `out`; the rename at the end makes it
# all or nothing, and the lock keeps two concurrent runs from doing the same work twice.
build_once() {
    local target=$1
    shift
    [[ -e $target ]] && return
    mkdir -p "${target%/*}"
    (
        flock 9
        [[ -e $target ]] && exit
        work=$(mktemp -d "${target%/*}/.build.XXXXXX")
        trap 'rm -rf -- "$work"' EXIT
        chmod 755 "$work"
        # Errexit is off in a command whose status is looked at, so it runs by itself here.
        "$@" "$work"
        mv -T -- "$work/out" "$target"
    ) 9>"${target%/*}/.lock.${target##*/}"
}
