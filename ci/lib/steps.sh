# Runs the steps of ci/test: shows what they say, counts what they tested, and sums up. Most run one after the other; those
# that wait more than they compute may run beside the others (step --beside), and are shown when they are joined.
# shellcheck shell=bash
. "$CI_LIB/stacks.sh"

# How many test programs may pass at the second try only.
FLAKY_MOST=2
# When the whole is over, whatever hangs.
GATE_LIMIT=$(limit_of whole "*")

PASSED=0 FAILED=0 RESULTS=() FLAKY=() FAILURES=()
# So many lines of a failed step's output are shown again at the end.
FAILURE_LINES=12
# The steps that run beside the others: their names and processes. Each has a log and a result, named after its number.
BESIDE=() BESIDE_PIDS=()
STEP_LOGS=$(mktemp -d)
# What is to run: the words that are to be in a step's name, all if there are none; from which step on; up to the first failure.
WANTED=() FROM='' FAIL_FAST='' OVER=''
LIVE=''
[[ ! -t 1 ]] || LIVE=yes

# Ends all that still runs, with what it has started, also when this script is ended by a signal.
leave_steps() {
    local pids
    mapfile -t pids < <(descendants $$ $BASHPID)
    end_processes "${pids[@]}"
    rm -rf -- "$STEP_LOGS"
}
trap leave_steps EXIT

# count_tests LOG: prints how many passed and failed by the closing lines of cargo's and of our own runners, and how many
# such lines there are.
count_tests() {
    sed -nE 's/^(test result: [a-zA-Z]+\. )?([0-9]+) passed[;,] ([0-9]+) failed.*/\2 \3/p' "$1" |
        awk '{passed += $1; failed += $2} END {print passed + 0, failed + 0, NR}'
}

# cpu_seconds PID: of all that this process has run and waited for.
cpu_seconds() {
    awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($14 + $15) / ticks) }' "/proc/$1/stat"
}

# run_step LIMIT RESULT COMMAND...: in a shell of its own; writes to the file RESULT its status, seconds, and seconds of processor.
# What hangs leaves its limit, or what is left of the whole's.
run_step() {
    local limit=$1 result=$2 begin=$SECONDS self=$BASHPID left=$((GATE_LIMIT - SECONDS)) status
    shift 2
    set +e
    ((left > 1)) || left=1
    limited $((limit < left ? limit : left)) "$@"
    status=$?
    echo "$status $((SECONDS - begin)) $(cpu_seconds "$self")" >"$result"
}

# report NAME LOG: adds up what a step that has ended left in LOG and LOG.result, and says it.
report() {
    local name=$1 log=$2 status seconds cpu passed failed counts flaky=0 verdict=ok line
    read -r status seconds cpu <"$log.result" || status=1 seconds=0 cpu=0
    read -r passed failed counts < <(count_tests "$log")
    if ((counts == 0 && status == 0)); then
        passed=1
    elif ((failed == 0 && (status != 0 || passed == 0))); then
        failed=1
    fi
    ((failed == 0)) || verdict=FAILED
    while IFS= read -r line; do
        FLAKY+=("$line ($name)")
        flaky=$((flaky + 1))
    done < <(grep '^flaky: ' "$log")
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    [[ $verdict == ok ]] || FAILURES+=("--- $name" "$(failures_in "$log")")
    [[ ! $LIVE || $verdict == ok ]] || cat -- "$log"
    RESULTS+=("$(printf '%-8s %-36s %5d passed %3d failed %2d flaky %5d s, CPU %5d s' \
        "$verdict" "$name" "$passed" "$failed" "$flaky" "$seconds" "$cpu")")
    printf '%s\n' "${RESULTS[-1]}"
    [[ $verdict == ok || ! $FAIL_FAST ]] || OVER=yes
}

# failures_in LOG: the tests that failed, with what they said; the last lines if it names none.
failures_in() {
    local found
    found=$(grep -A 3 -E '^---- .* stdout ----|^\*\*\* |^error|^FAIL' "$1" | grep -vE '^--$|^$' | cut -c 1-300) || true
    printf '%s\n' "${found:-$(tail -n "$FAILURE_LINES" "$1")}" | sed -n "1,${FAILURE_LINES}p"
}

# chosen NAME: whether the step is to run.
chosen() {
    local word
    [[ ! $OVER ]] || return 1
    [[ ! $FROM || $1 == *"$FROM"* ]] || return 1
    FROM=''
    ((${#WANTED[@]})) || return 0
    for word in "${WANTED[@]}"; do
        [[ $1 != *"$word"* ]] || return 0
    done
    return 1
}

# live NAME: on a terminal, a line that says what runs, and for how long, until it is ended.
live() {
    local begin=$SECONDS
    while sleep 1; do
        printf '\r\033[K%s, %d s%s' "$1" $((SECONDS - begin)) "${BESIDE[*]:+; beside it: $(IFS=,; echo "${BESIDE[*]}")}" >/dev/tty
    done
}

# step [--whole] [--beside] NAME COMMAND...: a step that counts no tests is one itself. Goes on after a failure; the summary tells. With
# --whole it is no part of a quick run; with --beside it runs until it is joined. Call it plainly, never in a condition: there the
# shell would go on after a failure within COMMAND, too.
step() {
    local name limit whole='' beside='' log liveness
    while [[ $1 == --* ]]; do
        case $1 in
            --whole) whole=yes ;;
            --beside) beside=yes ;;
        esac
        shift
    done
    name=$1
    shift
    limit=$(limit_of step "$name")
    if [[ ${LIST:-} ]]; then
        printf '%s%s\n' "$name" "${whole:+ (not in a quick run)}"
        return
    fi
    [[ ! ${QUICK:-} || ! $whole ]] || return 0
    chosen "$name" || return 0
    if [[ $beside ]]; then
        log=$STEP_LOGS/${#BESIDE[@]}
        run_step "$limit" "$log.result" "$@" >"$log" 2>&1 </dev/null &
        BESIDE+=("$name") BESIDE_PIDS+=($!)
        return
    fi
    log=$STEP_LOGS/step
    rm -f -- "$log.result"
    if [[ $LIVE ]]; then
        live "$name" &
        liveness=$!
        run_step "$limit" "$log.result" "$@" >"$log" 2>&1 </dev/null &
        wait $! || true
        kill "$liveness"
        wait "$liveness" 2>/dev/null || true
        printf '\r\033[K'
    else
        printf '\n=== %s\n' "$name"
        run_step "$limit" "$log.result" "$@" 2>&1 </dev/null | tee "$log"
    fi
    report "$name" "$log"
}

# join_steps: waits for those that run beside the others, and shows them.
join_steps() {
    local number
    [[ ! $OVER ]] || return 0
    for number in "${!BESIDE[@]}"; do
        wait "${BESIDE_PIDS[number]}" || true
        if [[ ! $LIVE ]]; then
            printf '\n=== %s\n' "${BESIDE[number]}"
            cat -- "$STEP_LOGS/$number"
        fi
        report "${BESIDE[number]}" "$STEP_LOGS/$number"
    done
    BESIDE=() BESIDE_PIDS=()
}

# summary: the table, the programs that passed at the second try only, what failed, and as the last line the count. Fails when a test did, when there
# was none, or when too much is flaky.
summary() {
    [[ ! ${LIST:-} ]] || return 0
    join_steps
    if ((${#FLAKY[@]} > FLAKY_MOST)); then
        FAILED=$((FAILED + 1))
        RESULTS+=("FAILED   ${#FLAKY[@]} programs are flaky, $FLAKY_MOST may be")
    fi
    printf '\n=== summary, %d s\n' "$SECONDS"
    printf '%s\n' "${RESULTS[@]}" "${FLAKY[@]}" "${FAILURES[@]}"
    [[ ! $OVER ]] || echo "ended at the first failure (--fail-fast)"
    printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
    ((FAILED == 0 && PASSED > 0))
}
