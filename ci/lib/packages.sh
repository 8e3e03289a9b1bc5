# What is installed from Debian or Ubuntu, by purpose, and how.
# shellcheck shell=bash

declare -A PACKAGES=(
    [build]="gcc g++ make libc6-dev libibverbs-dev librdmacm-dev pkg-config"
    [samples]="clang g++-mingw-w64-x86-64"
    [test]="cmake dpkg-dev gdb iproute2 libasio-dev libclang-dev lintian meson procps python3 python3-yaml shellcheck tshark
        valgrind"
    [lab]="qemu-system-x86 busybox-static kmod cpio xz-utils zstd gcc make util-linux procps iproute2 rdma-core
        ibverbs-providers ibverbs-utils rdmacm-utils perftest libfabric-bin"
    [bench]="python3 libfabric-dev pkg-config"
)

# is_installed PACKAGE: where dpkg does not know, what the package is for tells.
is_installed() {
    if have dpkg-query; then
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
        return
    fi
    case $1 in
        libibverbs-dev | librdmacm-dev | libfabric-dev) pkg-config --exists "${1%-dev}" 2>/dev/null ;;
        libc6-dev) [[ -e /usr/include/stdio.h ]] ;;
        g++-mingw-w64-x86-64) have x86_64-w64-mingw32-g++ ;;
        iproute2) have ip ;;
        procps) have pgrep ;;
        *) have "$1" ;;
    esac
}

# missing_packages PURPOSE...: prints the packages that are not installed.
missing_packages() {
    local purpose package
    for purpose in "$@"; do
        for package in ${PACKAGES[$purpose]}; do
            is_installed "$package" || echo "$package"
        done
    done | sort -u
}

# explain_packages PACKAGE...: what somebody else has to run.
explain_packages() {
    if have apt-get; then echo "apt-get install --no-install-recommends $*"; else echo "install these, under whatever names they have here: $*"; fi
}

# install_packages PACKAGE...: by apt, or brings them up to date. The package lists are fetched first, once: old ones name
# versions that are gone. What apt says of that matters only if it fails then.
install_packages() {
    (($#)) || return 0
    have apt-get || die 2 "no apt-get here; install these yourself: $*"
    ((EUID == 0)) || die 2 "not root; run: apt-get install --no-install-recommends $*"
    if [[ -z ${LISTS_FETCHED:-} ]]; then
        say "asking apt for its package lists"
        LISTS_TROUBLE=$(apt-get update -qq 2>&1) || true
        LISTS_FETCHED=yes
    fi
    say "installing $*"
    local words
    words=$(DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" 2>&1) && return
    # Without a network each package has lines of its own; the first about the lists says it all.
    [[ ! $LISTS_TROUBLE || ! $words =~ Unable\ to\ (fetch|locate)|no\ installation\ candidate ]] ||
        die 1 "apt-get could not fetch them: ${LISTS_TROUBLE%%$'\n'*}"
    die 1 "apt-get could not install them:"$'\n'"$words"
}
