"""The figures that the project wants to reach, and when a row is too blurred to tell."""
from collections import namedtuple

# A kind of row that every run has; bench/report --check looks for each.
EXPECTED = ["send/receive latency", "RDMA write latency", "RDMA read latency", "system calls for", "context switches for",
            "send rate", "RDMA write rate", "RDMA write bandwidth", "connections,", "heap per connection",
            "register and deregister", "heap per queue pair", "instructions for one send/receive",
            "instructions for one connection"]

Goal = namedtuple("Goal", "text modes prefix key limit")
Verdict = namedtuple("Verdict", "goal device word detail")

AT_MOST, AT_LEAST = 1, -1
MANY = ("sender's instructions for one send of many", "sender's instructions for one RDMA write of many",
        "instructions for one send of many")
GOALS = [
    (Goal("polling send/receive latency at most 1.02 of raw verbs", ["poll"], "send/receive latency", "ratio", 1.02), AT_MOST),
    (Goal("instructions of a polling send/receive at most 1.02 of raw verbs", ["poll"], "instructions for one send/receive", "ratio", 1.02), AT_MOST),
    (Goal("message rate at least 0.98 of raw verbs", ["poll"], ("send rate", "RDMA write rate"), "ratio", 0.98), AT_LEAST),
    (Goal("instructions of a message of many at most 1/0.98 of raw verbs", ["poll"], MANY, "ratio", 1 / 0.98), AT_MOST),
    (Goal("blocking send/receive latency at most 1.05 of raw verbs", ["event", "port"], "send/receive latency", "ratio",
          1.05), AT_MOST),
    (Goal("instructions of a blocking send/receive at most 1.05 of raw verbs", ["event", "port"],
          "instructions for one send/receive", "ratio", 1.05), AT_MOST),
    (Goal("connections at least 0.95 of plain rdma_cm", ["event", "port"], "connections,", "ratio", 0.95), AT_LEAST),
    (Goal("instructions of a connection at most 1/0.95 of plain rdma_cm", ["event", "port"], "instructions for one connection", "ratio",
          1 / 0.95), AT_MOST),
    (Goal("latency below libfabric", None, ("send/receive latency", "RDMA write latency", "RDMA read latency"),
          "over_libfabric", 1.0), AT_MOST),
    (Goal("instructions below libfabric's", None, ("instructions for one send/receive", "instructions for one RDMA"),
          "over_libfabric", 1.0), AT_MOST),
    (Goal("message rate above libfabric", None, ("send rate", "RDMA write rate"), "over_libfabric", 1.0), AT_LEAST),
    (Goal("instructions of a message of many below libfabric's", None, MANY, "over_libfabric", 1.0), AT_MOST),
    (Goal("a packet through a completion port as fast as through a queue of std or crossbeam", None, "port ", "ratio", 1.0),
     AT_MOST),
    (Goal("an event handed over within 1.2 of a futex", None, "event ping-pong", "ratio", 1.2), AT_MOST),
    (Goal("an echo through a completion port within 1.3 of epoll in C", None, "echo of", "ratio", 1.3), AT_MOST),
]
# Beside TCP, which has no completions: raw verbs, and what this library adds to them.
EMULATOR_GOALS = [
    (Goal("latency at most 1.15 of plain TCP", ["poll", "event"], "send/receive latency", "over_tcp", 1.15), AT_MOST),
    (Goal("bandwidth at least 0.90 of plain TCP", ["poll", "event"], "send bandwidth, 1 MiB", "over_tcp", 0.90), AT_LEAST),
    (Goal("latency below libfabric's tcp provider", None, "send/receive latency", "over_libfabric", 1.0), AT_MOST),
    (Goal("message rate above libfabric's tcp provider", None, ("send rate", "send bandwidth"), "over_libfabric", 1.0), AT_LEAST),
]

# On emulated machines times exaggerate some things and blur others. What is counted decides instead: for each goal in time,
# those that count what it is about.
CALLS = "one system call more than raw verbs in a blocking round trip"
WAKE_UPS = "no wake-up more than raw verbs in a blocking round trip"
DECIDED_BY = {
    "polling send/receive latency at most 1.02 of raw verbs": ["instructions of a polling send/receive at most 1.02 of raw verbs"],
    "message rate at least 0.98 of raw verbs": ["instructions of a message of many at most 1/0.98 of raw verbs"],
    "blocking send/receive latency at most 1.05 of raw verbs": [CALLS, WAKE_UPS],
    "connections at least 0.95 of plain rdma_cm": ["instructions of a connection at most 1/0.95 of plain rdma_cm"],
    "latency below libfabric": ["instructions below libfabric's"],
    "message rate above libfabric": ["instructions of a message of many below libfabric's"],
}


def blurred(row, key="ratio"):
    """Whether the quartiles of the ratio are further apart than it is from 1."""
    ratio, spread = row.get(key), row.get("spread" if key == "ratio" else key + "_spread")
    apart = spread[1] - spread[0] if isinstance(spread, list) else spread or 0
    return apart > abs(ratio - 1)


def name_of(row):
    return f"{row['name']}, {row['mode']}" if row.get("mode") else row["name"]


def judge(goal, direction, rows):
    """One verdict for one device: the worst row that is not blurred decides; a blurred one alone misses nothing."""
    counted = [row for row in rows if row["name"].startswith(goal.prefix) and row.get(goal.key) is not None
               and (goal.modes is None or row.get("mode") in goal.modes)]
    if not counted:
        return None
    missed = [row for row in counted if direction * (row[goal.key] - goal.limit) > 0]
    clear = [row for row in missed if not blurred(row, goal.key)]
    if clear:
        worst = max(clear, key=lambda row: direction * row[goal.key])
        return "missed", f"{len(clear)} of {len(counted)} rows, worst {worst[goal.key]:.4f}: {name_of(worst)}"
    if missed:
        return "blurred", f"{len(missed)} of {len(counted)} rows beyond it, all blurred"
    worst = max(counted, key=lambda row: direction * row[goal.key])
    return "reached", f"worst {worst[goal.key]:.4f}: {name_of(worst)}"


def has_both(row):
    return row.get("ours") is not None and row.get("raw") is not None


def counted_verdicts(rows):
    """System calls and wake-ups of a blocking round trip, where each run gives the same: differences count, not ratios."""
    found = []
    for text, prefix, allowed in [
        (CALLS, "system calls for", 1.0),
        (WAKE_UPS, "context switches for", 0.0),
    ]:
        counted = [row for row in rows
                   if row["name"].startswith(prefix) and row["name"].endswith("one processor") and has_both(row)]
        if not counted:
            continue
        worst = max(counted, key=lambda row: row["ours"] - row["raw"])
        more = worst["ours"] - worst["raw"]
        # A tenth of a call is what the machine adds by chance: a completion that comes a little sooner or later.
        word = "reached" if more <= allowed + 0.1 else "missed"
        found.append((text, word, f"{more:+.2f}: {name_of(worst)}"))
    return found


def memory_verdict(rows):
    counted = [row for row in rows if row["name"].startswith("heap per connection") and has_both(row)]
    if not counted:
        return []
    worst = max(counted, key=lambda row: row["ours"] - row["raw"])
    more = worst["ours"] - worst["raw"]
    return [("less than 4 KiB of our own heap for a connection", "reached" if more < 4096 else "missed",
             f"{more:,.0f} B more than raw verbs: {name_of(worst)}")]


def price_verdicts(rows):
    """What the layer itself costs, on the null device."""
    found = []
    for name, unit, most in [("Send, GetResults", "ns", 15), ("Send, GetResults", "instructions", 120),
                             ("GetResults of 16, each", "ns", 4)]:
        row = next((row for row in rows if row["name"] == name and row["unit"] == unit and has_both(row)), None)
        if row:
            more = row["ours"] - row["raw"]
            found.append((f"{name}: at most {most} {unit} more than raw verbs", "reached" if more <= most else "missed",
                          f"{more:+.1f}"))
    return found


def decided(mine):
    """The verdicts of one device, those in time with the word of what decides them."""
    words = {verdict.goal: verdict.word for verdict in mine}
    for verdict in mine:
        deciders = [words[text] for text in DECIDED_BY.get(verdict.goal, []) if text in words]
        if verdict.word != "reached" and deciders:
            count = next((word for word in ("missed", "blurred") if word in deciders), "reached")
            verdict = verdict._replace(word=f"{verdict.word} in time, {count} by count")
        yield verdict


def verdicts(rows):
    found = []
    for device in ["rxe", "siw", "emulator", "null", "none"]:
        mine = [row for row in rows if row["device"] == device]
        wanted = EMULATOR_GOALS if device == "emulator" else GOALS
        judged = [(goal.text, judge(goal, direction, mine)) for goal, direction in wanted]
        told = [Verdict(text, device, *verdict) for text, verdict in judged if verdict]
        more = counted_verdicts(mine) + memory_verdict(mine) + (price_verdicts(mine) if device == "null" else [])
        told += [Verdict(text, device, *rest) for text, *rest in more]
        found += decided(told)
    return found
