# The soft-iWARP driver. Debian's kernels leave it out, so it is built from the kernel's own source package against its own
# headers, both unpacked in a temporary folder: nothing is installed, and only the module is kept.
# shellcheck shell=bash

# prepare_siw: sets SIW to the module built for $KERNEL, or to nothing when the kernel ships its own.
prepare_siw() {
    SIW=
    if [[ -z $(find "$KERNEL/lib/modules" -name 'siw.ko*' -print -quit) ]]; then
        SIW=$CACHE/siw/$(basename "$KERNEL")-$(sha256sum <"$CI_LIB/siw.sh" | cut -c1-12).ko
        build_once "$SIW" build_siw
    fi
}

build_siw() { # WORK
    local work=$1 version series headers package log=$1/log
    for tool in gcc make; do
        have "$tool" || die 2 "no $tool to build the siw driver with: run ci/setup lab"
    done
    version=$(<"$KERNEL/version")
    series=$(cut -d. -f1,2 <<<"$version")
    say "building the siw driver for $KERNEL_RELEASE (140 MB to fetch, half a minute, once)"
    headers=linux-headers-$KERNEL_RELEASE
    for package in "$headers" "linux-headers-${KERNEL_RELEASE%-*}-common" "linux-kbuild-$series"; do
        download_package "$package=$version" "$work"
        dpkg-deb -x "$DEB" "$work/root"
    done
    download_package "linux-source-$series=$version" "$work"
    dpkg-deb --fsys-tarfile "$DEB" | tar -xO "./usr/src/linux-source-$series.tar.xz" |
        tar -xJ -C "$work" --strip-components=4 "linux-source-$series/drivers/infiniband/sw/siw"
    mend_accept "$work/siw/siw_cm.c"
    # The headers name each other by absolute path, as if installed.
    sed -i "s#/usr/src/#$work/root/usr/src/#" "$work/root/usr/src/$headers/Makefile"
    make -C "$work/root/usr/src/$headers" M="$work/siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= \
        -j"$(nproc)" modules >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die 1 "the siw driver did not build"
    }
    strip --strip-debug -o "$work/out" "$work/siw/siw.ko"
}

# mend_accept FILE: has the driver listen for messages before it tells the other end that it may send. As it is, it does so
# after, and one that comes in between lies there until the next: of several hundred connections one hung. Nothing above the
# driver can help that.
mend_accept() {
    sed -i '/^int siw_accept(/,/^}/ s/^\trv = siw_send_mpareqrep(/\tif (!wait_for_peer_rts)\n\t\tsiw_qp_socket_assoc(cep, qp);\n\n&/' "$1"
    # Not quietly: grep would stop reading, and the pipe fail for sed's sake.
    sed -n '/^int siw_accept(/,/^}/ p' "$1" | grep 'if (!wait_for_peer_rts)' >/dev/null ||
        die 1 "the siw driver's accept is not as it was: see mend_accept"
}
