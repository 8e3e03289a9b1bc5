# The lab in a virtual machine: boots the prepared kernel under qemu and runs one command in it.
# shellcheck shell=bash

BOOT_LIMIT=90 # seconds to the guest's first sign of life; it takes two or three on an idle machine
QEMU=qemu-system-x86_64
VM_TOOLS=("$QEMU" busybox modprobe depmod cpio xz strip flock setpriv)

prepare_vm() {
    local tool
    [[ $(uname -m) == x86_64 ]] || die 2 "the lab's virtual machine is x86_64 only; load rdma_rxe here and use NDCOMPAT_LAB=host"
    for tool in "${VM_TOOLS[@]}"; do
        PATH=$PATH:/usr/sbin:/sbin have "$tool" || die 2 "no $tool: run ci/setup lab"
    done
    PATH=$PATH:/usr/sbin:/sbin
    prepare_kernel
    prepare_siw
    prepare_initramfs
}

# choose_accel: sets ACCEL. A /dev/kvm that is there may still not boot a kernel (nested clouds), so it is tried once in
# each life of this machine.
choose_accel() {
    local verdict
    ACCEL=(-accel "tcg,thread=multi" -cpu max)
    if [[ $ICOUNT ]]; then
        ACCEL=(-accel tcg -icount "shift=0,sleep=on" -cpu max)
        return
    fi
    [[ -w /dev/kvm ]] || return 0
    verdict=$CACHE/kvm/$(</proc/sys/kernel/random/boot_id)
    build_once "$verdict" try_kvm
    if [[ $(<"$verdict") == works ]]; then
        ACCEL=(-accel kvm -cpu host)
    fi
}

try_kvm() { # WORK
    say "trying /dev/kvm (at most 10 s, once)"
    # Without a run folder the guest's init says so and powers off: enough to know that it got there.
    # The brackets keep the shell's word on a qemu that aborts out of sight.
    { timeout -k 1 10 "$QEMU" -accel kvm -cpu host -machine q35 -m 512M "${BARE[@]}" -serial "file:$1/console" \
        -kernel "$KERNEL/vmlinux" -initrd "$INITRAMFS" -append "console=ttyS0 panic=-1"; } </dev/null >"$1/log" 2>&1 || true
    if grep -q '^lab:' "$1/console" 2>/dev/null; then
        echo works >"$1/out"
    else
        echo "does not boot a kernel" >"$1/out"
    fi
}

BARE=(-nodefaults -no-user-config -display none -no-reboot)

# What saves time or trouble in emulation: no calibration that can fail on a busy host, no self-tests.
kernel_arguments() {
    local khz slabs=
    khz=$(awk '/^cpu MHz/ {print int($4 * 1000); exit}' /proc/cpuinfo)
    if [[ $ICOUNT ]]; then
        khz=1000000
        # Big slabs. With small ones a connection may find the last free buffers of two, and then each of its packets goes the
        # allocator's long way, while another's do not.
        slabs="slub_min_order=4 slub_max_order=5 slub_min_objects=256"
    fi
    echo "console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable no_timer_check lpj=5000000 audit=0 apparmor=0" \
        "selinux=0 cryptomgr.notests random.trust_cpu=on 8250.nr_uarts=1 mitigations=off swiotlb=noforce tsc_early_khz=${khz:-2000000} $slabs"
}

# share TAG FOLDER [OPTION]: the qemu arguments for a folder that the guest mounts by 9p.
share() {
    VM+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap${3:+,$3}"
        -device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}

# write_run_folder COMMAND...: lays out in $RUN what lib/guest/init and lib/guest/run read.
write_run_folder() {
    local folder tag=0 name rows columns
    cp -r "$CI_LIB/guest" "$RUN/guest"
    printf 'LAB_%s=%q\n' DEVICE "$DEVICE" HOSTS "$HOSTS" LIMIT "$LIMIT" SHELL "$INTERACTIVE" >"$RUN/config"
    for folder in "${WRITABLE[@]}"; do
        share "rw$tag" "$folder"
        printf 'rw%d %s\n' $tag "$folder" >>"$RUN/writable"
        tag=$((tag + 1))
    done
    {
        while read -r name; do
            printf 'export %s=%q\n' "$name" "${!name}"
        done < <(compgen -e | grep -E '^(PATH|LD_LIBRARY_PATH|HOME|TERM|LANG|LC_.*|CARGO_.*|RUST_.*|NDCOMPAT_.*)$' |
            grep -vE '^NDCOMPAT_(DEVICE|RDMADEV|NETDEV|ADDR6?)(_|$)')
        if [[ -t 0 && -n $INTERACTIVE ]]; then
            read -r rows columns < <(stty size)
            printf 'stty rows %d cols %d\n' "$rows" "$columns"
        fi
        printf 'cd %q\nexec' "$PWD"
        printf ' %q' "$@"
        echo
    } >"$RUN/command"
    : >>"$RUN/writable"
    : >"$RUN/out"
}

# boot: runs the guest to its end, its output going to ours.
boot() {
    local watcher
    local -a reader=()
    if [[ $INTERACTIVE ]]; then
        setpriv --pdeathsig KILL "$QEMU" "${VM[@]}" <&3 2>"$RUN/qemu.log" &
    else
        setpriv --pdeathsig KILL "$QEMU" "${VM[@]}" </dev/null >"$RUN/qemu.log" 2>&1 &
    fi
    VM_PID=$!
    if [[ ! $INTERACTIVE ]]; then
        setpriv --pdeathsig KILL tail -f -q -n +1 -s 0.1 --pid="$VM_PID" "$RUN/out" &
        reader=("$!")
    fi
    SECONDS=0
    watch_guest "$VM_PID" &
    watcher=$!
    VM_HELPERS=("$watcher" "${reader[@]}")
    wait -n "$VM_PID" "${reader[@]}" || true
    if kill -0 "$VM_PID" 2>/dev/null; then
        exit 141 # the reader has lost our standard output (SIGPIPE): nobody looks any more
    fi
    wait "$VM_PID" "${reader[@]}" || true
    kill "$watcher" 2>/dev/null || true
    VM_PID=
}

# watch_guest PID: ends a guest that does not boot, and one that is deaf to its own time limit.
watch_guest() {
    local end=
    while kill -0 "$1" 2>/dev/null; do
        sleep 1
        if [[ -e $RUN/booted ]]; then
            [[ ! $INTERACTIVE ]] || return 0
            : "${end:=$((SECONDS + LIMIT + 150))}"
        fi
        if ((SECONDS >= ${end:-$BOOT_LIMIT})); then
            [[ -z $end ]] || : >"$RUN/late"
            kill "$1"
            return
        fi
    done
}

stop_vm() {
    if [[ -n ${VM_PID:-} ]]; then
        disown -a # or the shell would tell of each that dies
        kill -KILL "$VM_PID" "${VM_HELPERS[@]}" 2>/dev/null || true
    fi
    [[ -z ${TTY_STATE:-} ]] || stty "$TTY_STATE" <&3 2>/dev/null || true
    [[ -z ${RUN:-} ]] || rm -rf -- "$RUN"
}

# run_in_vm COMMAND...: exits with its status.
run_in_vm() {
    local try
    prepare_vm
    choose_accel
    RUN=$(mktemp -d "${TMPDIR:-/tmp}/ndcompat-lab.XXXXXX")
    trap stop_vm EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    VM=("${ACCEL[@]}" -machine "q35,max-ram-below-4g=512M" -smp "$SMP" -m 4G "${BARE[@]}" -serial "file:$RUN/console"
        -kernel "$KERNEL/vmlinux" -initrd "$INITRAMFS" -append "$(kernel_arguments)")
    share root / readonly=on
    share run "$RUN"
    if [[ $INTERACTIVE ]]; then
        exec 3<&0
        [[ ! -t 3 ]] || TTY_STATE=$(stty -g <&3)
        VM+=(-chardev "stdio,id=io,signal=off" -device virtio-serial-pci -device "virtconsole,chardev=io")
    fi
    write_run_folder "$@"
    for try in 1 2; do
        boot
        [[ ! -e $RUN/booted ]] || break
        say "the virtual machine did not start (try $try of 2)"
    done
    [[ -s $RUN/status ]] || no_status
    exit "$(<"$RUN/status")"
}

# The guest never said how the command ended.
no_status() {
    sed 's/^/qemu: /' "$RUN/qemu.log" >&2
    if [[ -s $RUN/console ]]; then
        say "end of the guest's console:"
        tail -n 100 "$RUN/console" >&2
    fi
    [[ ! -e $RUN/late ]] || die 124 "the guest no longer answers, $LIMIT s are over"
    [[ -e $RUN/booted ]] || die 125 "the guest never booted"
    die 125 "the guest ended without a status for the command (a kernel crash, or too little memory)"
}
