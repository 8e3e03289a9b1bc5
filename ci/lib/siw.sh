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
    local work=$1 version series headers packages package log=$1/log
    for tool in gcc make; do
        have "$tool" || die 2 "no $tool to build the siw driver with: run ci/setup lab"
    done
    version=$(<"$KERNEL/version")
    series=$(cut -d. -f1,2 <<<"$version")
    say "building the siw driver for $KERNEL_RELEASE (140 MB to fetch, half a minute, once)"
    headers=linux-headers-$KERNEL_RELEASE
    # The common headers and kbuild, whose names newer kernels make in another way.
    mapfile -t packages < <(apt-cache depends "$headers=$version" | sed -nE 's/^ *Depends: (linux-(headers|kbuild)-.*)/\1/p')
    for package in "$headers" "${packages[@]}"; do
        download_package "$package=$version" "$work"
        dpkg-deb -x "$DEB" "$work/root"
    done
    download_package "linux-source-$series=$version" "$work"
    dpkg-deb --fsys-tarfile "$DEB" | tar -xO "./usr/src/linux-source-$series.tar.xz" |
        tar -xJ -C "$work" --strip-components=4 "linux-source-$series/drivers/infiniband/sw/siw"
    mend_driver "$work/siw"
    # The headers name each other by absolute path, as if installed.
    sed -i "s#/usr/src/#$work/root/usr/src/#" "$work/root/usr/src/$headers/Makefile"
    make -C "$work/root/usr/src/$headers" M="$work/siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= \
        -j"$(nproc)" modules >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die 1 "the siw driver did not build"
    }
    strip --strip-debug -o "$work/out" "$work/siw/siw.ko"
}

# What the driver gets wrong and nothing above it can put right. docs/differences.md says what a driver without this does.
mend_driver() { # FOLDER
    # A connection is up for the other end as soon as it is answered, but here the socket is listened to only afterwards: a
    # message that comes in between lies there until the next. Listen first.
    mend "$1/siw_cm.c" siw_accept 's/^\trv = siw_send_mpareqrep(/\tif (!wait_for_peer_rts)\n\t\tsiw_qp_socket_assoc(cep, qp);\n\n&/'
    # A message whose last byte TCP has taken is sent, also when the other end has closed meanwhile.
    mend "$1/siw_qp_tx.c" siw_qp_sq_proc_tx \
        's/if (unlikely(c_tx->tx_suspend)) {/if (c_tx->tx_suspend \&\& !(c_tx->pkt.ctrl.ddp_rdmap_ctrl \& DDP_FLAG_LAST)) {/'
    # The Terminate message of a peer that refuses a read has that read in it. It is the oldest one unanswered; report it as
    # refused, not as flushed. (num_sge of a read that waits for its answer is 1, and nobody asks.)
    mend "$1/siw_qp_rx.c" siw_proc_terminate \
        's/^out:/\tif (term->flag_r \&\& op == RDMAP_RDMA_READ_REQ \&\& qp->attrs.orq_size) {\n\t\tstruct siw_sqe *rreq = orq_get_current(qp);\n\n\t\tif (rreq->sge[0].laddr == be64_to_cpu(term_info.rreq.sink_to))\n\t\t\trreq->num_sge = 0;\n\t}\n&/'
    mend "$1/siw_qp.c" siw_sq_flush \
        '/orq_size)/,/orq_get++/ s/SIW_WC_WR_FLUSH_ERR/sqe->num_sge ? SIW_WC_WR_FLUSH_ERR : SIW_WC_REM_ACCESS_ERR/'
    # Up to 32 bytes go with the header. Where they lie on two pages, as many are taken of the first as there are on the second.
    mend "$1/siw_qp_tx.c" siw_try_1seg 's/part = bytes - (PAGE_SIZE - off);/part = PAGE_SIZE - off;/'
    # A connection has its listener's endpoint until it is accepted. One that ends before that is no end of the listener.
    mend "$1/siw_cm.c" siw_cm_llp_state_change \
        's/^\tcase TCP_CLOSE_WAIT:/&\n\t\tif (cep->state == SIW_EPSTATE_LISTENING)\n\t\t\tbreak;/'
    # For tests that ask which driver they meet: /sys/module/siw/version.
    echo 'MODULE_VERSION("mended");' >>"$1/siw_main.c"
}

# mend FILE FUNCTION SCRIPT: edits FUNCTION of FILE by a sed script, which must find what it looks for.
mend() {
    local before
    before=$(<"$1")
    sed -i "/^[a-z].*\\<$2(/,/^}/ { $3
}" "$1"
    [[ $(<"$1") != "$before" ]] || die 1 "$2 of the siw driver is not as it was: see mend_driver"
}
