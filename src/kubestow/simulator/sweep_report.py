"""The results of a sweep: a table, the best combinations over all seeds, and a plot for each varied field."""

import html
from statistics import fmean
from typing import Any

from kubestow.insight.decisions.moved import FIGURES
from kubestow.simulator import results
from kubestow.simulator.report import page, table
from kubestow.simulator.sweeping import SEED

OBJECTIVES = {
    "wait": ("mean wait, s", 1),
    "wait95": ("95 % of waits within, s", 1),
    "pending": ("pods pending at the end", 1),
    "evictions": ("evicted by preemption", 1),
    "fragmentation": ("fragmentation, mean", 1),
    "bound": ("pods bound", -1),
    "cpu": ("CPU requested, mean share", -1),
}
"""The objectives of a sweep: a figure, and whether less (1) or more (-1) of it is better."""
_BEST = 10
_WIDTH, _HEIGHT = 860, 240


def as_csv(found: list[dict[str, Any]]) -> bytes:
    """Return a CSV file with a line for each point: its fields and its figures."""
    fields = list(found[0]["fields"]) if found else []
    figures = FIGURES.values()
    rows = ([*one["fields"].values(), *(read(one["results"]) for read in figures)] for one in found)
    return results.as_csv([*fields, *FIGURES], rows)


def best(found: list[dict[str, Any]], objective: str) -> list[tuple[dict[str, Any], float, int]]:
    """Return the combinations, each with the mean of the objective and the number of seeds; best first."""
    name, sign = OBJECTIVES[objective]
    groups: dict[str, tuple[dict[str, Any], list[float]]] = {}
    for one in found:
        fields = {key: value for key, value in one["fields"].items() if key != SEED}
        groups.setdefault(repr(fields), (fields, []))[1].append(float(FIGURES[name](one["results"])))
    rated = [(fields, fmean(values), len(values)) for fields, values in groups.values()]
    return sorted(rated, key=lambda one: sign * one[1])


def lines(found: list[dict[str, Any]], objective: str) -> list[str]:
    """Return the lines for the terminal."""
    text = [f"{_simulations(found)}; the best by {OBJECTIVES[objective][0]}, mean over seeds:"]
    for fields, value, _ in best(found, objective)[:_BEST]:
        text.append(f"  {value:12.5g}  " + (", ".join(f"{name}={one}" for name, one in fields.items()) or "unchanged"))
    return text


def _simulations(found: list[dict[str, Any]]) -> str:
    return "1 simulation" if len(found) == 1 else f"{len(found)} simulations"


def page_of(found: list[dict[str, Any]], objective: str) -> str:
    """Return the content of report.html."""
    name = OBJECTIVES[objective][0]
    rated = best(found, objective)
    fields = list(rated[0][0]) if rated else []
    rows = [(f"{value:.5g}", count, *(one[field] for field in fields)) for one, value, count in rated[:50]]
    parts = ["<h1>Sweep</h1>", f"<p>{_simulations(found)}.</p>", f"<h2>Best by {html.escape(name)}</h2>"]
    parts.append(table((name, "seeds", *fields), rows))
    for field in fields:
        parts.append(f"<h2>{html.escape(name)} by {html.escape(field)}</h2>")
        parts.append(_plot([(one[field], value) for one, value, _ in rated]))
    return page("Sweep", "\n".join(parts))


def _plot(points: list[tuple[Any, float]]) -> str:
    """Return a plot with a dot for each combination; values that are not numbers are spaced evenly."""
    kinds = sorted({value for value, _ in points}, key=str)
    numeric = all(isinstance(value, int | float) for value in kinds)
    low, high = (min(kinds), max(kinds)) if numeric else (0, len(kinds) - 1)
    top, parts = max(max(value for _, value in points), 1e-9) * 1.05, []
    for value, height in points:
        place = value if numeric else kinds.index(value)
        x = 60 + (_WIDTH - 90) * ((place - low) / (high - low) if high > low else 0.5)
        y = _HEIGHT - 30 - (_HEIGHT - 50) * height / top
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--a)" fill-opacity="0.7"/>')
    for label, x in ((low, 60), (high, _WIDTH - 30)) if numeric else ((kinds[0], 60), (kinds[-1], _WIDTH - 30)):
        shown = f"{label:.5g}" if isinstance(label, int | float) else html.escape(str(label))
        parts.append(f'<text x="{x}" y="{_HEIGHT - 8}" text-anchor="middle">{shown}</text>')
    axis = f'<line x1="50" x2="{_WIDTH - 10}" y1="{_HEIGHT - 30}" y2="{_HEIGHT - 30}" stroke="var(--line)"/>'
    most = f'<text x="46" y="24" text-anchor="end">{top:.4g}</text>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{axis}{most}{"".join(parts)}</svg>'
