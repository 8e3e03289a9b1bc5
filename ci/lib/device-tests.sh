# Runs the device tests: in the lab on soft-RoCE and soft-iWARP the programs of tests/device/tests, the peers and the samples; those programs
# natively on the emulator, too.
# shellcheck shell=bash

# tests_of PACKAGES ARGUMENT...: their tests (lib/test-program).
tests_of() {
    TEST_PACKAGES=$1 cargo --config "target.'cfg(unix)'.runner = '$CI_LIB/test-program'" test --locked --no-fail-fast --workspace "${@:2}"
}

# record DEVICE: the tests that follow record anew which statuses they have seen on it, for ci/conformance.
record() {
    export NDCOMPAT_SHOWN
    NDCOMPAT_SHOWN=$(readlink -m "${CARGO_TARGET_DIR:-target}")/shown
    mkdir -p "$NDCOMPAT_SHOWN"
    rm -f -- "$NDCOMPAT_SHOWN/$1"
}

# machine_limit PROGRAM...: the seconds that a machine has for them.
machine_limit() {
    local program sum=60
    for program; do
        sum=$((sum + $(limit_of program "$(program_name "$program")")))
    done
    echo $sum
}

# device_machine DEVICE PROCESSORS FOLDER PROGRAM...: the programs one after the other in one machine, with their logs in FOLDER. What it
# says comes out in one piece. The machine is a virtual one unless NDCOMPAT_LAB says otherwise: the programs change addresses, routes,
# limits and files.
device_machine() {
    local device=$1 processors=$2 folder=$3 limit
    shift 3
    mkdir -p "$folder"
    limit=$(machine_limit "$@")
    NDCOMPAT_LAB=${NDCOMPAT_LAB:-vm} NDCOMPAT_SHOWN=$folder ci/lab run --device "$device" --smp "$processors" --timeout "$limit" \
        -- ci/lib/device-programs "$@" >"$folder/machine.log" 2>&1
}

# ended FOLDER PROGRAM: the status with which it has ended in the machine of FOLDER. Fails if it has not.
ended() {
    cat -- "$1/$(program_name "$2").status" 2>/dev/null
}

# show FOLDER PROGRAM [closing]: its log; without its closing lines if something else closes it.
show() {
    local log
    log=$1/$(program_name "$2").log
    if [[ ${3:-} ]]; then cat -- "$log"; else sed -E '/^test result: FAILED/d; /^[0-9]+ passed, [0-9]+ failed$/d' -- "$log"; fi
}

# judge DEVICE PROCESSORS FOLDER PROGRAM: shows how a program fared. If it did not pass, it is run once more, in a machine of its own, with
# the log of the failure kept. Who passes then is flaky.
judge() {
    local device=$1 processors=$2 folder=$3 program=$4 name first again
    name=$(program_name "$program")
    first=$(ended "$folder" "$program") || first=''
    again=$folder/again.$name
    if [[ $first == 0 ]]; then
        show "$folder" "$program" closing
        return
    fi
    if [[ -e $folder/$name.log ]]; then
        show "$folder" "$program"
        # A machine that was ended says itself what was running.
        [[ $first ]] || cat -- "$folder/machine.log"
    fi
    printf '\n*** %s on %s: once more, in a machine of its own\n' "$name" "$device"
    device_machine "$device" "$processors" "$again" "$program" || true
    if [[ $(ended "$again" "$program") == 0 ]]; then
        show "$again" "$program" closing
        # It may not have been reached.
        [[ ! -e $folder/$name.log ]] || echo "flaky: $name on $device, first seen in $folder"
        return
    fi
    if [[ $(ended "$again" "$program") ]]; then
        show "$again" "$program" closing
    else
        cat -- "$again/machine.log"
        printf '*** %s on %s has not ended\n0 passed, 1 failed\n' "$name" "$device"
    fi
    return 1
}

# run_and_judge DEVICE PROCESSORS FOLDER PROGRAM...: a machine, and what came of it, in one piece.
run_and_judge() {
    local device=$1 processors=$2 folder=$3 program status=0
    shift 3
    device_machine "$device" "$processors" "$folder" "$@" || true
    for program; do
        judge "$device" "$processors" "$folder" "$program" || status=1
    done >"$folder/judged.log"
    (
        flock 9
        cat -- "$folder/judged.log"
    ) 9<"${folder%/*}"
    return $status
}

# device_tests DEVICE: the test programs of the package. Booting a machine takes eight seconds of processor, so most share two. Those
# that change the machine's devices and addresses have one, in an order in which none spoils the next; those that change its files and
# limits, or take long, have one each. Two machines run at a time, because they wait a lot; beside them the two programs that do
# nothing but wait, for a minute or more, until a lost link or a silent address is given up.
#
# An emulated machine with one processor needs two thirds of the work, and finds what spins where another thread has to run. With two,
# threads meet. Of those that share, one half has one processor on soft-RoCE and two on soft-iWARP, the other half the reverse.
device_tests() {
    local programs program machine parts number=0 shared=("" "") changing=() waiting=() running=() ended status=0
    local machines=() single=0
    [[ $1 != siw ]] || single=1
    programs=$(cargo test --locked -p ndcompat-tests --test '*' --no-run -q --message-format=json |
        sed -nE '/"reason":"compiler-artifact"/ s/.*"executable":"([^"]+)".*/\1/p')
    [[ -n $programs ]] || die 1 "no device tests found"
    record "$1"
    parts=$NDCOMPAT_SHOWN/$1.parts
    rm -rf -- "$parts"
    mkdir -p "$parts"
    for program in $programs; do
        number=$((number + 1))
        case $(program_name "$program") in
            link | retry)
                run_and_judge "$1" 1 "$parts/$number" "$program" &
                waiting+=($!)
                ;;
            faults | storm) machines+=("2 $program") ;;
            diagnosis) machines+=("1 $program") ;;
            addresses) changing[0]=$program ;;
            adapters) changing[1]=$program ;;
            removal) changing[2]=$program ;;
            *) shared[number % 2]+=" $program" ;;
        esac
    done
    machines+=("1${shared[single]}" "2${shared[1 - single]}" "1 ${changing[*]}")
    for machine in "${machines[@]}"; do
        [[ $machine == *" "[^\ ]* ]] || continue # no program
        if ((${#running[@]} == 2)); then
            wait -n -p ended "${running[@]}" || status=1
            [[ ${running[0]} != "$ended" ]] || running=("${running[1]}")
            running=("${running[0]}")
        fi
        number=$((number + 1))
        # shellcheck disable=SC2086 # the number of processors, and programs
        run_and_judge "$1" ${machine%% *} "$parts/$number" ${machine#* } &
        running+=($!)
    done
    for machine in "${running[@]}" "${waiting[@]}"; do
        wait "$machine" || status=1
    done
    find "$parts" -type f -name "$1" -exec cat {} + >"$NDCOMPAT_SHOWN/$1"
    return $status
}

# device_scripts DEVICE NAME SCRIPT...: test scripts with their arguments, one after the other in one machine.
device_scripts() {
    local folder
    folder=$(readlink -m "${CARGO_TARGET_DIR:-target}")/shown/$1.$2
    rm -rf -- "$folder"
    mkdir -p "${folder%/*}"
    run_and_judge "$1" 1 "$folder" "${@:3}"
}

# emulator: programs are to find the emulator, and the tests to know that they have it.
emulator() {
    export NDCOMPAT_EMULATOR=on NDCOMPAT_DEVICE=emulator NDCOMPAT_ADDR=127.0.0.1 NDCOMPAT_ADDR6=::1
}

# wired ARGUMENT...: cargo test for the device tests on the emulator, in a network namespace.
wired() {
    cargo --config "target.'cfg(unix)'.runner = ['$CI_LIB/wire', '$CI_LIB/test-program']" test --locked --no-fail-fast \
        -p ndcompat-tests "$@"
}

# The device tests on the emulator, on this machine as it is. Those that change addresses, links and ports, or remove the device, have
# a network namespace with a wire; those beside the others do nothing but wait until a lost link or a silent address is given up. What needs
# a second adapter, or a wire that spoils packets, which not every kernel has, is in the lab (device_machine). The storm is longer here,
# where a second makes a hundred connections.
emulator_tests() {
    local file name tests=() waiting=() one status=0
    for file in tests/device/tests/*.rs; do
        name=$(basename "$file" .rs)
        [[ $name =~ ^(adapters|addresses|faults|link|removal|retry|storm|tcp_ports)$ ]] || tests+=(--test "$name")
    done
    emulator
    record emulator
    wired --test retry >"$NDCOMPAT_SHOWN/emulator.retry.log" 2>&1 &
    waiting+=($!)
    wired --test link -- --skip sending_on_a_lost_link >"$NDCOMPAT_SHOWN/emulator.link.log" 2>&1 &
    waiting+=($!)
    wired --test link sending_on_a_lost_link >"$NDCOMPAT_SHOWN/emulator.lost.log" 2>&1 &
    waiting+=($!)
    tests_of ndcompat-tests "${tests[@]}" || status=1
    wired --test addresses --test faults --test removal --test tcp_ports -- --skip a_bad_wire || status=1
    NDCOMPAT_STORM_ACTIONS=40000 tests_of ndcompat-tests --test storm a_storm_passes || status=1
    for one in "${waiting[@]}"; do
        wait "$one" || status=1
    done
    cat "$NDCOMPAT_SHOWN"/emulator.*.log
    return $status
}
