# The lab on the host itself, where the running kernel has (or can load) the drivers and we are root.
# shellcheck shell=bash

drivers_for() { # DEVICE
    case $1 in
        both) echo rdma_rxe siw ;;
        rxe) echo rdma_rxe ;;
        siw) echo siw ;;
    esac
}

# host_can DEVICE HOSTS: says on standard output why not. Two hosts need policy routes that nobody wants on a real machine.
host_can() {
    local driver
    [[ $2 == 1 ]] || { echo "two hosts need a virtual machine" && return 1; }
    ((EUID == 0)) || { echo "not root" && return 1; }
    for driver in $(drivers_for "$1") rdma_ucm; do
        [[ -d /sys/module/$driver ]] || modprobe -n -q "$driver" 2>/dev/null ||
            { echo "the running kernel $(uname -r) has no $driver" && return 1; }
    done
}

# load_drivers: and what makes devices of them.
load_drivers() {
    local driver
    . "$CI_LIB/guest/devices"
    for driver in $(drivers_for "$DEVICE") rdma_ucm; do
        [[ -d /sys/module/$driver ]] || modprobe "$driver"
    done
    have rdma || die 2 "no rdma: run ci/setup lab"
}

# lock_host: one lab at a time, as names and addresses are fixed. Until this script ends.
lock_host() {
    exec 8>/run/ndcompat-lab.lock
    flock -n 8 && return
    say "waiting for another ci/lab on this machine"
    flock 8
}

# leave_on_host: makes the devices, prints what tells of them, and leaves them.
leave_on_host() {
    load_drivers
    lock_host
    remove_devices
    make_devices "$DEVICE" "$HOSTS" || {
        remove_devices
        die 125 "the host's $DEVICE device did not come up; see dmesg"
    }
    env | grep -E '^NDCOMPAT_(DEVICE|ADDR|ADDR6|NETDEV|RDMADEV)(_RXE|_SIW)?=' | sort
}

# remove_from_host: what leave_on_host has left.
remove_from_host() {
    ((EUID == 0)) || die 2 "not root"
    . "$CI_LIB/guest/devices"
    lock_host
    remove_devices
}

# run_on_host COMMAND...: exits with its status.
run_on_host() {
    local child='' status=0 netdev
    load_drivers
    ulimit -l unlimited
    lock_host
    for netdev in ndrxe ndsiw; do
        [[ ! -e /sys/class/net/$netdev ]] || die 2 "there is a device on $netdev already: use it without ci/lab run, or remove it by ci/lab down"
    done
    trap 'kill "$child" 2>/dev/null || true; remove_devices' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    make_devices "$DEVICE" 1 || die 125 "the host's $DEVICE device did not come up; see dmesg"
    timeout -k 5 "$LIMIT" "$@" 8>&- </dev/null &
    child=$!
    wait "$child" || status=$?
    if [[ $status == 124 ]]; then
        say "time limit of $LIMIT s; end of the kernel log:"
        dmesg | tail -n 40 >&2
    fi
    exit "$status"
}
