# The kernel that the lab boots: the distribution's own packages, unpacked into the cache, not installed.
# shellcheck shell=bash

DEFAULT_KERNELS=(linux-image-amd64 linux-image-generic) # Debian's and Ubuntu's

# The kernel package to boot, as NAME=VERSION: the one that is asked for by --kernel or NDCOMPAT_KERNEL, or the newest that apt knows.
kernel_candidate() {
    local name=${NDCOMPAT_KERNEL:-} names version
    if [[ $name == *=* ]]; then
        echo "$name"
        return
    fi
    # A package without a release in its name depends on one with.
    if [[ ! $name =~ ^linux-image-[0-9] ]]; then
        names=("${DEFAULT_KERNELS[@]}")
        [[ ! $name ]] || names=("$name")
        name=$(apt-cache depends "${names[@]}" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    fi
    [[ -n $name ]] || return 1
    version=$(apt-cache policy "$name" | sed -n 's/^ *Candidate: //p')
    [[ -n $version && $version != "(none)" ]] || return 1
    printf '%s=%s\n' "$name" "$version"
}

# prepare_kernel: sets KERNEL to a folder with vmlinux, modules and `release`, and makes it when there is none.
# A kernel that is in the cache stays in use, so a later start asks nobody; `ci/lab clean` brings the newest. One that is asked for by
# name has a place of its own there.
prepare_kernel() {
    local package
    KERNEL=$CACHE/kernel/current${NDCOMPAT_KERNEL:+-$NDCOMPAT_KERNEL}
    if [[ ! -e $KERNEL/release ]]; then
        have apt-get || die 2 "no kernel package: the lab needs the apt-get of Debian or Ubuntu, or a host with rdma_rxe (NDCOMPAT_LAB=host)"
        if ! package=$(kernel_candidate); then
            say "asking apt for its package lists"
            apt-get -qq update >&2 || true
            package=$(kernel_candidate) ||
                die 2 "no kernel package: $(explain_kernel)"
        fi
        build_once "$CACHE/kernel/${package#linux-image-}" build_kernel "$package"
        ln -sfn "${package#linux-image-}" "$KERNEL.$$"
        mv -T -- "$KERNEL.$$" "$KERNEL"
    fi
    KERNEL=$(readlink -f "$KERNEL")
    KERNEL_RELEASE=$(<"$KERNEL/release")
}

# explain_kernel: what is missing, and what to do.
explain_kernel() {
    echo "apt knows no ${NDCOMPAT_KERNEL:-${DEFAULT_KERNELS[0]} (Debian) or ${DEFAULT_KERNELS[1]} (Ubuntu)}; check /etc/apt/sources.list, then run: apt-get update"
}

# download_package PACKAGE FOLDER: sets DEB to the package file, fetched into FOLDER.
download_package() {
    (cd "$2" && apt-get -qq -o APT::Sandbox::User=root download "$1") >&2 ||
        die 2 "cannot download $1: run apt-get update and try again; if the archive has it no longer, run ci/lab clean, and the" \
            "lab takes the newest kernel"
    DEB=$(find "$2" -maxdepth 1 -name "${1%%=*}_*.deb" -print -quit)
}

build_kernel() { # PACKAGE WORK
    local package=$1 work=$2 version=${1#*=} release name modules
    say "fetching the kernel ${package#linux-image-} (70 to 200 MB, once)"
    download_package "$package" "$work"
    dpkg-deb -x "$DEB" "$work/root"
    release=$(basename "$work"/root/boot/vmlinuz-*)
    release=${release#vmlinuz-}
    # Ubuntu's modules are in packages of their own: the newest kernels' in one, those of others in two.
    for name in "linux-modules-$release" "linux-modules-extra-$release"; do
        apt-cache show "$name=$version" >/dev/null 2>&1 || continue
        download_package "$name=$version" "$work"
        dpkg-deb -x "$DEB" "$work/root"
    done
    mkdir "$work/out"
    extract_vmlinux "$work/root/boot/vmlinuz-$release" "$work/out/vmlinux" ||
        die 1 "the kernel in $package has an unknown format"
    mkdir -p "$work/out/lib/modules"
    modules=$(find "$work/root" -path "*/lib/modules/$release" -print -quit)
    mv "$modules" "$work/out/lib/modules/"
    depmod -b "$work/out" "$release"
    printf '%s\n' "$version" >"$work/out/version"
    printf '%s\n' "$release" >"$work/out/release"
}

# The ELF kernel inside a bzImage boots by PVH, with no BIOS and no decompression under emulation. Where the payload lies
# is in the header that the x86 boot protocol describes: setup_sects at 0x1f1, payload_offset and _length at 0x248.
extract_vmlinux() { # BZIMAGE OUT
    local sectors offset length magic unpack
    sectors=$(od -An -tu1 -j $((0x1f1)) -N1 "$1")
    read -r offset length < <(od -An -tu4 -j $((0x248)) -N8 "$1")
    offset=$(((sectors + 1) * 512 + offset))
    magic=$(od -An -tx1 -j "$offset" -N4 "$1" | tr -d ' ')
    # The payload ends with its unpacked size, four bytes that are no part of the compressed stream.
    case $magic in
        fd377a58) unpack=(xz -dc --single-stream) ;;
        28b52ffd) unpack=(zstd -dcq) ;;
        1f8b08*) unpack=(gzip -dcq) ;;
        02214c18) unpack=(lz4 -dcq) ;;
        *) return 1 ;;
    esac
    have "${unpack[0]}" || die 2 "the kernel image needs ${unpack[0]}: run ci/setup lab"
    tail -c +$((offset + 1)) "$1" | head -c $((length - 4)) | "${unpack[@]}" >"$2" || true
    [[ $(head -c 4 "$2" | od -An -tx1 | tr -d ' ') == 7f454c46 ]]
}
