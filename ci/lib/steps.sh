# Runs the steps of ci/test: shows what they say, counts what they tested, and sums up. Most run one after the other; those
# that wait more than they compute may run beside the others (step --beside), and are shown when they are joined.
# shellcheck shell=bash

PASSED=0 FAILED=0 RESULTS=() UNSTEADY=()
# The steps that run beside the others: their names and processes. Each has a log and a result, named after its number.
BESIDE=() BESIDE_PIDS=()
STEP_LOGS=$(mktemp -d)

# Ends what still runs beside, each with what it has started.
leave_steps() {
    local pid pids
    for pid in "${BESIDE_PIDS[@]}"; do
        [[ -e /proc/$pid ]] || continue
        mapfile -t pids < <(descendants "$pid" 0)
        kill -TERM "$pid" "${pids[@]}" 2>/dev/null || true
    done
    rm -rf -- "$STEP_LOGS"
}
trap leave_steps EXIT

# count_tests LOG: prints how many passed and failed by the closing lines of cargo's and of our own runners, and how many
# such lines there are.
count_tests() {
    sed -nE 's/^(test result: [a-zA-Z]+\. )?([0-9]+) passed[;,] ([0-9]+) failed.*/\2 \3/p' "$1" |
        awk '{passed += $1; failed += $2} END {print passed + 0, failed + 0, NR}'
}

# descendants PID EXCEPT: prints the processes that it has started, and those that they have, but for one and what that has.
descendants() {
    local child
    for child in $(pgrep -P "$1" || true); do
        if ((child != $2)); then
            echo "$child"
            descendants "$child" "$2"
        fi
    done
}

# show_stacks PID...: where every thread of the processes is; of shells and virtual machines, what they run is enough.
show_stacks() {
    local pid task
    for pid; do
        [[ -e /proc/$pid/exe ]] || continue
        printf -- '--- process %s: %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-300)"
        case $(basename "$(readlink "/proc/$pid/exe")") in
            bash | dash | busybox | tee | sleep | timeout | qemu-*) continue ;;
        esac
        if have gdb; then
            timeout 60 gdb -p "$pid" -batch -nx -ex 'thread apply all backtrace 50' 2>/dev/null | grep -E '^(Thread|#)' || true
        fi
        for task in "/proc/$pid/task"/*; do
            printf 'in the kernel, thread %s (%s): %s\n' "${task##*/}" "$(cat "$task/comm")" "$(cat "$task/wchan")" 2>/dev/null || true
        done
    done
}

# watch PID SECONDS: when the time is over, shows where all descendants of PID are, and ends them.
watch() {
    local never self=$BASHPID pids
    # A wait without a process of its own, which would stay when this one is ended: a pipe that nobody writes to.
    exec {never}<> <(:)
    read -rt "$2" -u "$never" || true
    trap '' TERM
    mapfile -t pids < <(descendants "$1" "$self")
    printf '\n*** the time limit of %s s is over; what is running:\n' "$2"
    show_stacks "${pids[@]}"
    # The lab ends its machine in order.
    kill -TERM "${pids[@]}" 2>/dev/null
    sleep 5
    kill -KILL "${pids[@]}" 2>/dev/null
}

# limited SECONDS COMMAND...: runs it to its end, or until the time is over.
limited() {
    local limit=$1 self=$BASHPID watcher status
    shift
    watch "$self" "$limit" &
    watcher=$!
    (
        set -e
        "$@"
    )
    status=$?
    kill -TERM "$watcher" 2>/dev/null
    wait "$watcher" 2>/dev/null
    return $status
}

# cpu_seconds PID: of all that this process has run and waited for.
cpu_seconds() {
    awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($14 + $15) / ticks) }' "/proc/$1/stat"
}

# run_step LIMIT RESULT COMMAND...: in a shell of its own; writes to the file RESULT its status, seconds, and seconds of processor.
run_step() {
    local limit=$1 result=$2 begin=$SECONDS self=$BASHPID status
    shift 2
    set +e
    limited "$limit" "$@"
    status=$?
    echo "$status $((SECONDS - begin)) $(cpu_seconds "$self")" >"$result"
}

# report NAME LOG: adds up what a step that has ended left in LOG and LOG.result, and says it.
report() {
    local name=$1 log=$2 status seconds cpu passed failed counts verdict=ok line
    read -r status seconds cpu <"$log.result" || status=1 seconds=0 cpu=0
    read -r passed failed counts < <(count_tests "$log")
    if ((counts == 0 && status == 0)); then
        passed=1
    elif ((failed == 0 && (status != 0 || passed == 0))); then
        failed=1
    fi
    ((failed == 0)) || verdict=FAILED
    while IFS= read -r line; do
        UNSTEADY+=("$line ($name)")
    done < <(grep '^unsteady: ' "$log")
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    RESULTS+=("$(printf '%-8s %-32s %5d passed %3d failed %5d s, CPU %5d s' \
        "$verdict" "$name" "$passed" "$failed" "$seconds" "$cpu")")
    printf '%s\n' "${RESULTS[-1]}"
}

# step [--whole] [--beside] [--limit SECONDS] NAME COMMAND...: a step that counts no tests is one itself. Goes on after a
# failure; the summary tells. With --whole it is no part of a quick run; with --beside it runs until it is joined. Call it
# plainly, never in a condition: there the shell would go on after a failure within COMMAND, too.
step() {
    local name limit=900 whole='' beside='' log
    while [[ $1 == --* ]]; do
        case $1 in
            --whole) whole=yes ;;
            --beside) beside=yes ;;
            --limit)
                limit=$2
                shift
                ;;
        esac
        shift
    done
    name=$1
    shift
    if [[ ${LIST:-} ]]; then
        printf '%s%s\n' "$name" "${whole:+ (not in a quick run)}"
        return
    fi
    [[ ! ${QUICK:-} || ! $whole ]] || return 0
    [[ $name == *${ONLY:-}* ]] || return 0
    if [[ $beside ]]; then
        log=$STEP_LOGS/${#BESIDE[@]}
        run_step "$limit" "$log.result" "$@" >"$log" 2>&1 </dev/null &
        BESIDE+=("$name") BESIDE_PIDS+=($!)
        return
    fi
    printf '\n=== %s\n' "$name"
    log=$STEP_LOGS/step
    rm -f -- "$log.result"
    run_step "$limit" "$log.result" "$@" 2>&1 </dev/null | tee "$log"
    report "$name" "$log"
}

# join_steps: waits for those that run beside the others, and shows them.
join_steps() {
    local number
    for number in "${!BESIDE[@]}"; do
        wait "${BESIDE_PIDS[number]}" || true
        printf '\n=== %s\n' "${BESIDE[number]}"
        cat -- "$STEP_LOGS/$number"
        report "${BESIDE[number]}" "$STEP_LOGS/$number"
    done
    BESIDE=() BESIDE_PIDS=()
}

# summary: the table, the tests that passed at the second try only, and as the last line the count. Fails when a test did, or when there was none.
summary() {
    [[ ! ${LIST:-} ]] || return 0
    join_steps
    ((${#RESULTS[@]})) || die 2 "no step has '$ONLY' in its name; see ci/test --list"
    printf '\n=== summary, %d s\n' "$SECONDS"
    printf '%s\n' "${RESULTS[@]}" "${UNSTEADY[@]}"
    printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
    ((FAILED == 0 && PASSED > 0))
}
