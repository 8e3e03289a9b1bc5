# `ci/lab doctor`: one line for each thing that the lab needs.
# shellcheck shell=bash
. "$CI_LIB/packages.sh"

line() { printf '%-14s %s\n' "$1" "$2"; } # line THING VERDICT

# doctor: exits with 1 when `ci/lab run` could not work.
doctor() {
    local device why way=() missing package
    for device in rxe siw; do
        if why=$(host_can "$device" 1); then
            line "host $device" "ok: the running kernel has it"
            way+=("$device")
        else
            line "host $device" "no: $why"
        fi
    done

    missing=$(missing_packages lab | tr '\n' ' ')
    if [[ -n $missing ]]; then
        line "packages" "missing: ${missing}- run ci/setup lab"
    else
        line "packages" "ok"
    fi

    if [[ -e $CACHE/kernel/current/release ]]; then
        line "kernel" "ok: $(<"$CACHE/kernel/current/version") prepared"
    elif package=$(kernel_candidate); then
        line "kernel" "ok: $package to be fetched at the first run"
    else
        line "kernel" "missing: $(explain_kernel)"
        missing+=kernel
    fi
    if [[ -n $(find "$CACHE/siw" -name '*.ko' 2>/dev/null) ]]; then
        line "siw" "ok: driver built"
    else
        line "siw" "ok: driver to be built at the first run"
    fi

    if [[ -f $CACHE/kvm/$(</proc/sys/kernel/random/boot_id) ]]; then
        line "kvm" "$(<"$CACHE/kvm/$(</proc/sys/kernel/random/boot_id)")"
    elif [[ -w /dev/kvm ]]; then
        line "kvm" "to be tried at the first run"
    else
        line "kvm" "no /dev/kvm that we may use; emulation (TCG) instead"
    fi
    line "cache" "$CACHE ($(cache_size) used, $(cache_space) free)"

    if [[ ${#way[@]} == 2 || -z $missing ]]; then
        line "verdict" "ok: ci/lab run works here$([[ ${#way[@]} == 2 ]] && echo ", on the host itself")"
    else
        line "verdict" "ci/lab run cannot work yet"
        return 1
    fi
}

cache_size() {
    if [[ -d $CACHE ]]; then du -sh "$CACHE" | cut -f1; else echo 0; fi
}

cache_space() {
    local folder=$CACHE
    while [[ ! -d $folder ]]; do folder=${folder%/*}; done
    df -h --output=avail "${folder:-/}" | tail -n 1 | tr -d ' '
}
