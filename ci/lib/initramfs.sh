# The initramfs of the lab: busybox, the modules and lib/guest/init.
# shellcheck shell=bash

GUEST_MODULES=(virtio_pci 9pnet_virtio 9p virtio_console overlay dummy veth sch_netem ib_uverbs rdma_ucm rdma_rxe siw 8021q
    bonding)
# rxe and siw ask for these by name at run time, where no modprobe could find them. The newest kernels have no such modules.
GUEST_CHECKSUMS=(libcrc32c crc32_generic crc32c_generic)

# prepare_initramfs: sets INITRAMFS, which is made anew whenever the kernel or what goes in has changed.
prepare_initramfs() {
    local key
    key=$(cat "$CI_LIB/initramfs.sh" "$CI_LIB/siw.sh" "$CI_LIB/guest/init" | sha256sum | cut -c1-12)
    INITRAMFS=$CACHE/initramfs/$(basename "$KERNEL")-$key.gz
    build_once "$INITRAMFS" build_initramfs
}

# module_files MODULE: its file and those of what it needs, in the order of loading.
module_files() {
    modprobe -d "$KERNEL" -S "$KERNEL_RELEASE" --show-depends "$1" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
}

build_initramfs() { # WORK
    local root=$1/root module file n=100
    mkdir -p "$root"/{bin,modules,proc,sys,dev,low,upper,new}
    cp "$(command -v busybox)" "$root/bin/busybox"
    ln -s busybox "$root/bin/sh"
    cp "$CI_LIB/guest/init" "$root/init"
    {
        for module in "${GUEST_CHECKSUMS[@]}"; do
            module_files "$module" 2>/dev/null || true
        done
        for module in "${GUEST_MODULES[@]}"; do
            if [[ $module == siw && -n $SIW ]]; then
                printf '%s\n' "$SIW"
            else
                module_files "$module"
            fi
        done
    } | awk '!seen[$0]++' >"$1/list"
    while read -r file; do
        n=$((n + 1))
        module=$root/modules/$n-$(basename "${file%%.ko*}").ko # numbers keep the order of loading
        case $file in
            *.xz) xz -dc "$file" >"$module" ;;
            *.zst) zstd -dcq "$file" >"$module" ;;
            *) cp "$file" "$module" ;;
        esac
    done <"$1/list"
    strip --strip-debug "$root"/modules/*.ko
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$1/out"
}
