# Time limits: what passes its own is shown, with the stacks of all that it has started, and ended.
# shellcheck shell=bash

# limit_of KIND NAME: prints the limit of a step or a program in seconds, by the table in limits. Programs that are not in it have that
# of "*"; a step must be there. NDCOMPAT_LIMIT is that of programs in its place, for who has a slower machine.
limit_of() {
    if [[ $1 == program && ${NDCOMPAT_LIMIT:-} ]]; then
        echo "$NDCOMPAT_LIMIT"
        return
    fi
    awk -F '\t' -v kind="$1" -v name="$2" '$1 == kind && ($2 == name || ($2 == "*" && !limit)) {limit = $3}
        END {if (!limit) exit 1; print limit}' "$CI_LIB/limits" || die 2 "no limit for the $1 '$2' in ci/lib/limits"
}

# program_name PROGRAM: the name of a test program of cargo's, which has a number behind it; of a script "run", its folder's.
program_name() {
    local path=${1%% *}
    [[ ! $path =~ ^(.*)-[0-9a-f]+$ ]] || path=${BASH_REMATCH[1]}
    basename -- "${path%/run}"
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

# end_processes PID...: the lab, for example, ends its machine in order; whoever has not ended after five seconds is killed.
end_processes() {
    local try left
    kill -TERM "$@" 2>/dev/null || true
    for ((try = 0; try < 50; try++)); do
        # Of those that have ended, the ones that nobody has waited for are still there.
        left=$(ps -o stat= -p "$(IFS=,; echo "$*")" 2>/dev/null | grep -cv '^Z') || true
        ((left)) || return 0
        sleep 0.1
    done
    kill -KILL "$@" 2>/dev/null || true
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
    end_processes "${pids[@]}"
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
