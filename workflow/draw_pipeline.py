"""Draw the graph of the rules as docs/pipeline.svg; run it from the project's own folder.

    .venv/bin/python workflow/draw_pipeline.py

The graph is Snakemake's own (`--rulegraph`, of config.yaml), made readable: the figures of a part
are one node, rules that only join tables are left out, and so is every edge whose start leads to
its end by a longer way.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from spectral_laws.palette import PART_COLORS

PICTURE = Path("docs/pipeline.svg")
Nodes = dict[str, tuple[str, str]]
Edges = set[tuple[str, str]]


def read_graph(rulegraph: str, rules: Path) -> tuple[Nodes, Edges]:
    """The nodes of the picture, each with its part and its label, and the edges.

    Args:
        rulegraph: what `snakemake --rulegraph` prints.
        rules: folder of the rule files.
    """
    names: dict[str, str] = dict(re.findall(r'(\d+)\[label = "(\w+)"', rulegraph))
    edges = {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", rulegraph)}
    edges = {(a, b) for a, b in edges if b != "all"}
    for joining in {name for name in names.values() if re.match("collect_(?!provenance)", name)}:
        before = {a for a, b in edges if b == joining}
        after = {b for a, b in edges if a == joining}
        edges = {(a, b) for a, b in edges if joining not in (a, b)}
        edges |= {(a, b) for a in before for b in after}
    figures = {
        name: f"figures_{part}"
        for name in names.values()
        for part in PART_COLORS
        if re.match(f"plot_{part}(_|$)", name)
    }
    edges = _shortened({(figures.get(a, a), figures.get(b, b)) for a, b in edges})
    parts = _parts_of_rules(rules)
    nodes = {
        node: (parts.get(node, "curvature"), node.replace("_", "\n", 1).replace("_", " "))
        for edge in edges
        for node in edge
    }
    for part in PART_COLORS:
        count = [*figures.values()].count(f"figures_{part}")
        nodes[f"figures_{part}"] = (part, "1 figure" if count == 1 else f"{count} figures")
    return nodes, edges


def _parts_of_rules(folder: Path) -> dict[str, str]:
    return {
        rule: part
        for part in PART_COLORS
        for rule in re.findall(r"^rule (\w+):", (folder / f"{part}.smk").read_text(), re.MULTILINE)
    }


def _shortened(edges: Edges) -> Edges:
    """The edges that no longer way makes superfluous."""
    after: dict[str, set[str]] = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)

    def reached(node: str) -> set[str]:
        followers = after.get(node, set())
        return followers.union(*map(reached, followers))

    return {(a, b) for a, b in edges if not any(b in reached(c) for c in after[a])}


def to_dot(nodes: Nodes, edges: Edges) -> str:
    """The picture in dot's language."""
    lines = [
        "digraph pipeline {",
        "graph [rankdir=LR, nodesep=0.12, ranksep=0.22, bgcolor=white];",
        'node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif",',
        'fontsize=11, penwidth=1.2, margin="0.07,0.04", height=0.3, width=0.3];',
        "edge [arrowsize=0.5, penwidth=0.8];",
    ]
    for part, color in PART_COLORS.items():
        corner = "labelloc=b; labeljust=r;" if part == "claims" else "labeljust=l;"
        lines += [
            f'subgraph cluster_{part} {{ label={part}; {corner} color="{color}";',
            f'style="rounded,filled"; fillcolor="{color}14"; fontcolor="#222222"; fontsize=13;',
            'fontname="sans-serif";',
        ]
        for node, (place, label) in sorted(nodes.items()):
            if place == part:
                text = label.replace("\n", "\\n")
                lines.append(f'{node} [label="{text}", color="{color}"];')
        lines.append("}")
    for a, b in sorted(edges):
        # Recovery is short: longer edges to the claims move it to the middle.
        length = 3 if nodes[a][0] == "recovery" != nodes[b][0] else 1
        lines.append(f'{a} -> {b} [color="{PART_COLORS[nodes[a][0]]}", minlen={length}];')
    return "\n".join([*lines, "}"])


def main() -> None:
    """Write the picture."""
    if shutil.which("dot") is None:
        sys.exit("there is no `dot`: install graphviz (apt or brew install graphviz)")
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "--nolock", "--cores", "1"]
    rulegraph = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    picture = to_dot(*read_graph(rulegraph, Path("workflow/rules")))
    command = ["dot", "-Tsvg"]
    svg = subprocess.run(command, input=picture, stdout=subprocess.PIPE, text=True, check=True)
    PICTURE.write_text(svg.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
