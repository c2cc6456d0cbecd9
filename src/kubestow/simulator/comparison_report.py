"""Reports of a comparison: text, JSON and HTML."""

import html
from typing import Any

from kubestow.insight.decisions.moved import Scores
from kubestow.simulator.comparing import Cause, Comparison, Figure
from kubestow.simulator.report import page, table

_LISTED = 20


def as_tree(found: Comparison) -> dict[str, Any]:
    """Return the content of results.json."""
    return {
        "seeds": found.seeds,
        "versions": {"a": found.versions[0], "b": found.versions[1]},
        "figures": [one._asdict() for one in found.figures],
        "pods": {str(seed): count for seed, count in found.pods.items()},
        "moved": {str(seed): [one._asdict() for one in moved] for seed, moved in found.moved.items()},
        "causes": [
            {**one._asdict(), "first": one.first._asdict(), "a": one.a._asdict(), "b": one.b._asdict()}
            for one in found.causes
        ],
        "notes": found.notes,
    }


def _interval(one: Figure) -> str:
    margin = "" if one.margin is None else f" ± {one.margin:.4g}"
    return f"{one.difference:+.4g}{margin}"


def lines(found: Comparison) -> list[str]:
    """Return the lines for the terminal."""
    width = max(len(one.name) for one in found.figures)
    output = [f"{'':{width}}  {'A':>12}  {'B':>12}  B - A (95 %, {_seeds(found)})"]
    output += [f"{one.name:{width}}  {one.a:>12.5g}  {one.b:>12.5g}  {_interval(one)}" for one in found.figures]
    output += [_moved(found, seed) for seed in found.seeds]
    for cause in found.causes:
        output.append(f"{cause.pods} moved: {cause.why}")
        output += [f"  {line}" for line in example(cause)]
    return output + [f"Note: {note}" for note in found.notes]


def _seeds(found: Comparison) -> str:
    return "one seed" if len(found.seeds) == 1 else f"{len(found.seeds)} seeds"


def _moved(found: Comparison, seed: int) -> str:
    return f"Seed {seed}: {len(found.moved[seed])} of {found.pods[seed]} pods were placed differently."


def example(cause: Cause) -> list[str]:
    """Return an explanation of the first pod of a cause."""
    pod, a, b = cause.first.called, cause.first.a or "no node", cause.first.b or "no node"
    output = [f"Example: {pod} with seed {cause.seed}: A chose {a}, B chose {b}."]
    for name, scores in (("A", cause.a), ("B", cause.b)):
        output += [f"{name} {line}" for line in _score_lines(scores)]
    return output


def _score_lines(scores: Scores) -> list[str]:
    output = [f"finds no node: {scores.message}"] if scores.message else []
    for node, total in scores.totals.items():
        parts = " + ".join(f"{plugin} {score}" for plugin, score in scores.plugins[node].items() if score)
        output.append(f"scores {node} {total} = {parts or 0}")
    if not scores.message:
        output += [f"rejects {node}: {reasons}" for node, reasons in scores.refused.items()]
    if len(scores.totals) > 1 and len(set(scores.totals.values())) == 1:
        output.append("scores both nodes equally; the choice was random.")
    return output


def page_of(found: Comparison, title: str) -> str:
    """Return the content of report.html."""
    rows = [(one.name, f"{one.a:.5g}", f"{one.b:.5g}", _interval(one)) for one in found.figures]
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{_seeds(found)}; the last column is the mean difference with its 95 % interval.</p>",
        table(("", "A", "B", "B - A"), rows),
        "<h2>Why pods were placed differently</h2>",
    ]
    if found.causes:
        parts.append(table(("why", "pods"), [(one.why, one.pods) for one in found.causes]))
    else:
        parts.append("<p>None were.</p>")
    for cause in found.causes:
        parts.append(f"<h2>{html.escape(cause.why)}</h2>")
        parts += [f"<p>{html.escape(line)}</p>" for line in example(cause)]
    for seed in found.seeds:
        moved = found.moved[seed]
        parts.append(f"<h2>{_moved(found, seed)}</h2>")
        if moved:
            listed = [(one.called, one.a or "-", one.b or "-", one.why) for one in moved[:_LISTED]]
            parts.append(table(("pod", "A", "B", "why"), listed))
        if len(moved) > _LISTED:
            parts.append(f'<p class="note">... and {len(moved) - _LISTED} more</p>')
    return page(html.escape(title), "\n".join(parts))
