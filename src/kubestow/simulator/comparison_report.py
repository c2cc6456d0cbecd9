"""A comparison in words, as JSON and as a page."""

import html
from typing import Any

from kubestow.simulator.comparing import Comparison, Figure, Moved, Scores
from kubestow.simulator.report import page, table

_LISTED = 20


def as_tree(found: Comparison) -> dict[str, Any]:
    """For results.json."""
    return {
        "seeds": found.seeds,
        "figures": [one._asdict() for one in found.figures],
        "pods": {str(seed): count for seed, count in found.pods.items()},
        "moved": {str(seed): [one._asdict() for one in moved] for seed, moved in found.moved.items()},
        "first": {
            str(seed): {"moved": moved._asdict(), "a": a._asdict(), "b": b._asdict()}
            for seed, (moved, a, b) in found.first.items()
        },
    }


def _interval(one: Figure) -> str:
    margin = "" if one.margin is None else f" ± {one.margin:.4g}"
    return f"{one.difference:+.4g}{margin}"


def lines(found: Comparison) -> list[str]:
    """For the terminal."""
    width = max(len(one.name) for one in found.figures)
    told = [f"{'':{width}}  {'A':>12}  {'B':>12}  B - A (95 %, {len(found.seeds)} seeds)"]
    told += [f"{one.name:{width}}  {one.a:>12.5g}  {one.b:>12.5g}  {_interval(one)}" for one in found.figures]
    for seed in found.seeds:
        moved = found.moved[seed]
        told.append(f"Seed {seed}: {len(moved)} of {found.pods[seed]} pods were placed differently.")
        if seed in found.first:
            told += [f"  {line}" for line in why(*found.first[seed])]
    return told


def why(moved: Moved, a: Scores, b: Scores) -> list[str]:
    """The first decision that differs, explained."""
    told = [f"First {moved.pod}: A chose {moved.a or 'no node'}, B chose {moved.b or 'no node'}."]
    for name, scores in (("A", a), ("B", b)):
        if scores.message:
            told.append(f"{name}: {scores.message}")
        for node, total in scores.totals.items():
            parts = " + ".join(f"{plugin} {score}" for plugin, score in scores.plugins[node].items() if score)
            told.append(f"{name} scores {node} {total} = {parts or 0}")
        if len(set(scores.totals.values())) == 1 and len(scores.totals) > 1:
            told.append(f"{name} has both nodes equal and chose by chance.")
    return told


def page_of(found: Comparison, title: str) -> str:
    """For report.html."""
    rows = [(one.name, f"{one.a:.5g}", f"{one.b:.5g}", _interval(one)) for one in found.figures]
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{len(found.seeds)} seeds; the last column is the mean difference with its 95 % interval.</p>",
        table(("", "A", "B", "B - A"), rows),
    ]
    for seed in found.seeds:
        moved = found.moved[seed]
        parts.append(f"<h2>Seed {seed}: {len(moved)} of {found.pods[seed]} pods were placed differently</h2>")
        if seed in found.first:
            parts += [f"<p>{html.escape(line)}</p>" for line in why(*found.first[seed])]
        if moved:
            parts.append(table(("pod", "A", "B"), [(one.pod, one.a or "-", one.b or "-") for one in moved[:_LISTED]]))
        if len(moved) > _LISTED:
            parts.append(f'<p class="note">... and {len(moved) - _LISTED} more</p>')
    return page(html.escape(title), "\n".join(parts))
