"""Checks that the links of Markdown files lead somewhere: files, headings in them, and that docs/SUMMARY.md names every page.

Addresses on the network are left alone.
"""

import pathlib
import re
import sys

FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.M)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def anchors(text):
    """The names that GitHub gives headings."""
    names = set()
    for heading in HEADING.findall(FENCE.sub(blank, text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number, unique = 0, name
        while unique in names:
            number += 1
            unique = f"{name}-{number}"
        names.add(unique)
    return names


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    faults, links = [], 0
    for file in files:
        text = CODE.sub(blank, FENCE.sub(blank, file.read_text()))
        for found in LINK.finditer(text):
            target = found.group(1)
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            path, _, anchor = target.partition("#")
            to = (file.parent / path) if path else file
            line = text.count("\n", 0, found.start()) + 1
            if not to.exists():
                faults.append(f"{file}:{line}: no {path}")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to.read_text()):
                faults.append(f"{file}:{line}: {path or file} has no heading #{anchor}")
    summary = pathlib.Path("docs/SUMMARY.md")
    if summary in files:
        named = set(LINK.findall(summary.read_text()))
        for file in files:
            if file.parent == summary.parent and file != summary and file.name not in named:
                faults.append(f"{summary}: does not name {file.name}")
    print(f"{links} links in {len(files)} documents")
    if not links:
        faults.append("no links found: this checks nothing")
    if faults:
        sys.exit("\n".join(faults))


main()
