# Runs the steps of ci/test one after the other: shows what they say, counts what they tested, and sums up.
# shellcheck shell=bash

PASSED=0 FAILED=0 RESULTS=()
STEP_LOG=$(mktemp)
trap 'rm -f -- "$STEP_LOG"' EXIT

# count_tests WORD: adds up the "N passed" (or "N failed") of the closing lines of cargo's and of our own runners.
count_tests() {
    sed -nE 's/^(test result: [a-zA-Z]+\. )?([0-9]+ passed[;,] [0-9]+ failed).*/\2/p' "$STEP_LOG" |
        sed -E "s/.*\b([0-9]+) $1.*/\1/" | awk '{sum += $1} END {print sum + 0}'
}

# step NAME COMMAND...: a step that does not count tests is one itself. It fails when the command does, or any test in it.
step() {
    local name=$1 begin=$SECONDS status=0 passed failed verdict=ok
    shift
    [[ $name == *${ONLY:-}* ]] || return 0
    printf '\n=== %s\n' "$name"
    : >"$STEP_LOG"
    "$@" > >(tee "$STEP_LOG") 2>&1 </dev/null || status=$?
    wait # for tee, which has the rest
    passed=$(count_tests passed)
    failed=$(count_tests failed)
    if ((status != 0 && failed == 0)); then
        failed=1
    elif ((status == 0 && passed + failed == 0)); then
        passed=1
    fi
    ((failed == 0)) || verdict=FAILED
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    RESULTS+=("$(printf '%-8s %-30s %5d passed %3d failed %5d s' \
        "$verdict" "$name" "$passed" "$failed" $((SECONDS - begin)))")
    [[ $verdict == ok ]]
}

# summary: the table, and as the last line the count. Fails when a test did, or when there was none.
summary() {
    printf '\n=== summary, %d s\n' "$SECONDS"
    printf '%s\n' "${RESULTS[@]}"
    printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
    ((FAILED == 0 && PASSED > 0))
}
