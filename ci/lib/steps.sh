# Runs the steps of ci/test one after the other: shows what they say, counts what they tested, and sums up.
# shellcheck shell=bash

PASSED=0 FAILED=0 RESULTS=()
STEP_LOG=$(mktemp)
trap 'rm -f -- "$STEP_LOG"' EXIT

# count_tests: prints how many passed and failed by the closing lines of cargo's and of our own runners, and how many
# such lines there are.
count_tests() {
    sed -nE 's/^(test result: [a-zA-Z]+\. )?([0-9]+) passed[;,] ([0-9]+) failed.*/\2 \3/p' "$STEP_LOG" |
        awk '{passed += $1; failed += $2} END {print passed + 0, failed + 0, NR}'
}

# step NAME COMMAND...: a step that counts no tests is one itself. Goes on after a failure; the summary tells.
# Call it plainly, never in a condition: there the shell would go on after a failure within COMMAND, too.
step() {
    local name=$1 begin=$SECONDS status passed failed counts verdict=ok
    shift
    [[ $name == *${ONLY:-}* ]] || return 0
    printf '\n=== %s\n' "$name"
    set +e
    (
        set -e
        "$@"
    ) 2>&1 </dev/null | tee "$STEP_LOG"
    status=${PIPESTATUS[0]}
    set -e
    read -r passed failed counts < <(count_tests)
    if ((counts == 0 && status == 0)); then
        passed=1
    elif ((failed == 0 && (status != 0 || passed == 0))); then
        failed=1
    fi
    ((failed == 0)) || verdict=FAILED
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    RESULTS+=("$(printf '%-8s %-30s %5d passed %3d failed %5d s' \
        "$verdict" "$name" "$passed" "$failed" $((SECONDS - begin)))")
}

# summary: the table, and as the last line the count. Fails when a test did, or when there was none.
summary() {
    printf '\n=== summary, %d s\n' "$SECONDS"
    ((${#RESULTS[@]} == 0)) || printf '%s\n' "${RESULTS[@]}"
    printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
    ((FAILED == 0 && PASSED > 0))
}
