"""Small line plots as SVG, written by hand: logarithmic axes, one line a stack."""
import math
import os
from collections import namedtuple

Plot = namedtuple("Plot", "title file")

COLOURS = {"raw": "#555555", "ours": "#c0392b", "libfabric": "#2471a3", "rsockets": "#b7950b"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 280, 56, 12, 28, 40



class Axes:
    """Maps values to places, both axes logarithmic."""

    def __init__(self, xs, ys):
        self.low_x, self.high_x = min(xs), max(xs)
        self.low_y = 10 ** math.floor(math.log10(min(ys)))
        self.high_y = 10 ** math.ceil(math.log10(max(ys) * 1.0001))

    def x(self, value):
        span = math.log(self.high_x / self.low_x) or 1
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / self.low_x) / span

    def y(self, value):
        span = math.log(self.high_y / self.low_y) or 1
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(value / self.low_y) / span


def short(value):
    for unit, size in (("M", 1 << 20), ("K", 1 << 10)):
        if value >= size and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)


def tick(value):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{words}</text>'


def svg(title, x_label, y_label, lines):
    """`lines` maps a stack to its points."""
    points = [point for line in lines.values() for point in line]
    axes = Axes([x for x, _ in points], [y for _, y in points])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
           ' font-family="sans-serif" font-size="11">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(WIDTH / 2, 16, title, extra=' font-size="13"')]
    value = axes.low_y
    while value <= axes.high_y * 1.001:
        y = axes.y(value)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>')
        out.append(text(LEFT - 4, y + 4, tick(value), "end"))
        value *= 10
    for x in sorted({x for x, _ in points}):
        out.append(text(axes.x(x), HEIGHT - BOTTOM + 14, short(x)))
    out.append(text(WIDTH / 2, HEIGHT - 8, x_label))
    out.append(text(12, HEIGHT / 2, y_label, extra=f' transform="rotate(-90 12 {HEIGHT / 2})"'))
    for i, (stack, line) in enumerate(lines.items()):
        path = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[stack]}" stroke-width="1.6"/>')
        out += [f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="2.2" fill="{COLOURS[stack]}"/>' for x, y in line]
        out.append(text(LEFT + 8 + 80 * i, TOP + 8, stack, "start", f' fill="{COLOURS[stack]}" font-weight="bold"'))
    return "\n".join(out + ["</svg>", ""])


FIGURES = [
    # title, axes, file, which rows, what is along the axis
    ("send/receive latency, polling", "bytes", "us", "latency-poll",
     lambda row: row["operation"] == "ping" and row["field"] == "value" and row["mode"] == "poll", "size"),
    ("send/receive latency, blocking", "bytes", "us", "latency-event",
     lambda row: row["operation"] == "ping" and row["field"] == "value" and row["mode"] == "event", "size"),
    ("send rate, 64 B, 1 QP, polling", "depth", "messages/s", "rate-depth",
     lambda row: row["operation"] == "sends" and row["mode"] == "poll" and row["pairs"] == 1, "depth"),
    ("send rate, 64 B, depth 16, polling", "queue pairs", "messages/s", "rate-pairs",
     lambda row: row["operation"] == "sends" and row["mode"] == "poll" and row["depth"] == 16, "pairs"),
]


def draw(device, rows, folder):
    """Writes the plots for which there are rows; those of the null device and the like have none."""
    drawn = []
    for title, x_label, y_label, name, wanted, along in FIGURES:
        chosen = [row for row in rows if "operation" in row and row["unit"] != "instr" and wanted(row)]
        lines = {stack: sorted((row[along], row[stack]) for row in chosen if row.get(stack)) for stack in COLOURS}
        lines = {stack: line for stack, line in lines.items() if len(line) > 1}
        if not lines:
            continue
        file = f"bench-{device}-{name}.svg"
        with open(os.path.join(folder, file), "w") as out:
            out.write(svg(f"{title} ({device})", x_label, y_label, lines))
        drawn.append(Plot(f"{title}, {device}", file))
    return drawn
