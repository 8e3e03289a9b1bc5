# Reads what was shown on each device, then tests/statuses.emulator and tests/statuses; prints the page for ci/conformance.

function base_name(path) {
    sub(/.*\//, "", path)
    return path
}

# The tests of a cell, each once, in the order of their names.
function add_test(pair, test,    known, count, names, i, result) {
    known = tests[pair]
    if (index(" " known " ", " " test " ")) return
    count = split(known, names, " ")
    result = ""
    for (i = 1; i <= count; i++) {
        if (test != "" && test < names[i]) { result = result test " "; test = "" }
        result = result names[i] " "
    }
    if (test != "") result = result test
    sub(/ $/, "", result)
    tests[pair] = result
}

function mark(pair, where) {
    if ((pair, where) in shown) return "yes"
    if (where == "emulator" && pair in not_emulated) return "n/a: " not_emulated[pair]
    return "-"
}

function row(pair, status,    names) {
    names = tests[pair]
    gsub(/ /, "`, `", names)
    return sprintf("| | %s | `%s` | %s | %s | %s | %s |", status, names,
        mark(pair, "rxe"), mark(pair, "siw"), mark(pair, "emulator"), mark(pair, "double"))
}

FNR == 1 {
    documents = (FILENAME ~ /statuses$/)
    excuses = (FILENAME ~ /statuses\.emulator$/)
    if (!documents) current = base_name(FILENAME)
}

excuses {
    if (/^#/ || NF == 0) next
    pair = $1 " " $2
    match($0, / - /)
    not_emulated[pair] = substr($0, RSTART + 3)
    if ((pair, "emulator") in shown) complain(pair " has a reason why the emulator cannot show it, and has been shown there")
    if (!((pair, "rxe") in shown) && !((pair, "siw") in shown)) complain(pair " has a reason why the emulator cannot show it, and nothing else shows it")
    next
}

!documents {
    pair = $1 " " $2
    shown[pair, current] = 1
    add_test(pair, $3)
    if (!(pair in seen)) { seen[pair] = 1; extra[++extras] = pair }
    next
}

/^#/ || NF == 0 { next }

{
    pair = $1 " " $2
    documented[pair] = 1
    if ($1 != method) { method = $1; methods[++method_count] = method }
    list[method] = list[method] " " $2
    reason = ""
    if (match($0, / - /)) reason = substr($0, RSTART + 3)
    if (reason != "") {
        reasons[pair] = reason
        impossible++
        if (pair in seen) { complain(pair " has a reason why it cannot occur, and has occurred"); }
    } else {
        possible++
        if (!(pair in seen)) complain(pair " was shown by no test")
        else if (((pair, "rxe") in shown) || ((pair, "siw") in shown) || ((pair, "emulator") in shown)) real++
    }
}

# Whether the emulator leaves out what another software device shows, without a reason.
function is_gap(pair) {
    if (((pair, "emulator") in shown) || pair in not_emulated) return 0
    return ((pair, "rxe") in shown) || ((pair, "siw") in shown)
}

function complain(text) {
    print "conformance: " text > "/dev/stderr"
    failed = 1
}

END {
    for (i = 1; i <= extras; i++) if (is_gap(extra[i])) complain(extra[i] " was not shown on the emulator")
    print "# Which method gives which status, and which test shows it"
    print ""
    print "Made by `ci/conformance` from what the tests have shown; `ci/test` fails when it is out of date. Not to be edited."
    print ""
    print "The statuses are those that Microsoft's pages of the SPI name for a method, and those that Microsoft's programs demand"
    print "of it ([tests/statuses](../tests/statuses)). A status that a call returns and one that its `OVERLAPPED` completes with"
    print "count alike. `ND2_RESULT::Send` is the status in the result of a `Send`, and so on. The devices are soft-RoCE (rxe),"
    print "soft-iWARP (siw), the emulator ([emulator.md](emulator.md)) and a double of libibverbs and librdmacm that fails on request"
    print "([tests/double](../tests/double)). A dash is a status that no test has seen on that device, because only a failing device"
    print "gives it, or because another kind of device does. Of the emulator, which shows what any software device does, the reason is told"
    print "([tests/statuses.emulator](../tests/statuses.emulator))."
    print ""
    printf "**%d statuses documented: %d shown, of these %d on a software device; %d cannot occur**\n", \
        possible + impossible, possible, real, impossible
    print ""
    print "## Shown"
    print ""
    print "| method | status | tests | rxe | siw | emulator | double |"
    print "|---|---|---|---|---|---|---|"
    for (i = 1; i <= method_count; i++) {
        method = methods[i]
        name = "`" method "`"
        count = split(list[method], statuses, " ")
        for (j = 1; j <= count; j++) {
            pair = method " " statuses[j]
            if (pair in reasons) continue
            line = row(pair, statuses[j])
            sub(/^\| \|/, "| " name " |", line)
            name = ""
            print line
        }
    }
    print ""
    print "## Shown, and not documented"
    print ""
    print "| method | status | tests | rxe | siw | emulator | double |"
    print "|---|---|---|---|---|---|---|"
    # In an order that does not depend on which test ran first.
    for (i = 2; i <= extras; i++)
        for (j = i; j > 1 && extra[j] < extra[j - 1]; j--) { swap = extra[j]; extra[j] = extra[j - 1]; extra[j - 1] = swap }
    for (i = 1; i <= extras; i++) {
        if (extra[i] in documented) continue
        split(extra[i], words, " ")
        line = row(extra[i], words[2])
        sub(/^\| \|/, "| `" words[1] "` |", line)
        print line
    }
    print ""
    print "## Cannot occur here"
    print ""
    print "| method | status | why |"
    print "|---|---|---|"
    for (i = 1; i <= method_count; i++) {
        count = split(list[methods[i]], statuses, " ")
        for (j = 1; j <= count; j++)
            if ((methods[i] " " statuses[j]) in reasons)
                printf "| `%s` | %s | %s |\n", methods[i], statuses[j], reasons[methods[i] " " statuses[j]]
    }
    exit failed
}
