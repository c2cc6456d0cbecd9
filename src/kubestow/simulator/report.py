"""The page report.html: one file without scripts, fonts or pictures from other sites.

Charts are SVG generated here; colours follow the reader's light or dark setting.
"""

import html as escaping
from collections.abc import Iterable, Sequence
from typing import Any

from kubestow.simulator.measuring import Measures
from kubestow.simulator.results import format_duration, format_share, summary

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 860, 220, 56, 24
_FEWEST_SAMPLES = 2
_COLOURS = ("var(--a)", "var(--b)", "var(--c)")
_POLICY = (
    """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
    '<meta name="referrer" content="no-referrer">'
)
"""Browsers execute no script and load nothing, even if a name were not escaped."""
_STYLE = """
:root{--fg:#1d2733;--bg:#fff;--soft:#5f6b7a;--line:#dfe4ea;--a:#1f6feb;--b:#d9730d;--c:#2a9d63;--card:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--soft:#9aa5b1;--line:#30363d;--a:#58a6ff;--b:#f0883e;
--c:#56d391;--card:#161b22}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:900px;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 .5rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}p,li{margin:.2rem 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.25rem .5rem;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600}svg{width:100%;height:auto;display:block}
text{fill:var(--soft);font-size:11px}.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:.6rem;
margin:1rem 0}.card{background:var(--card);border-radius:6px;padding:.6rem .8rem}.card b{display:block;font-size:1.3rem}
.card span,.note{color:var(--soft);font-size:.85rem}.key{display:inline-block;width:.8em;height:.8em;
margin:0 .3em 0 .9em;border-radius:2px}
@media(max-width:600px){table{display:block;overflow-x:auto}th,td{padding:.25rem .35rem}
th:first-child,td:first-child{min-width:9rem}.chart{overflow:visible}.chart text{font-size:20px}}
"""


def html(results: dict[str, Any], measures: Measures, plugin_seconds: dict[str, float], name: str) -> str:
    """Return the report of one run."""
    title = escaping.escape(name or "Simulation")
    samples = measures.samples
    times = [one.time for one in samples]
    pods, waits = results["pods"], results["waits"]
    cards = {
        "simulated": format_duration(results["seconds"]),
        "pods bound": f"{pods['bound']:,}",
        "still pending": f"{pods['pending']:,}",
        "median wait": format_duration(waits["p50"]),
        "99 % wait within": format_duration(waits["p99"]),
        "evicted by preemption": f"{pods['victims']:,}",
    }
    usage = {
        "CPU": [one.cpu_requested / one.cpu_allocatable if one.cpu_allocatable else 0.0 for one in samples],
        "memory": [one.memory_requested / one.memory_allocatable if one.memory_allocatable else 0.0 for one in samples],
    }
    parts = [
        f"<h1>{title}</h1>",
        *(f"<p>{escaping.escape(line)}</p>" for line in summary(results)[:1]),
        *(f"<p>Note: {escaping.escape(note)}</p>" for note in results["notes"]),
        _cards(cards),
        "<h2>Utilisation: requested share of what nodes have</h2>",
        _lines(times, usage if any(one.nodes for one in samples) else {}, "There were no nodes.", percent=True),
        "<h2>Pods pending and running</h2>",
        _lines(
            times, {"pending": [float(one.pending) for one in samples]}, "No pod was pending at the time of a sample."
        ),
        _lines(
            times,
            {"running": [float(one.running) for one in samples], "nodes": [float(n.nodes) for n in samples]},
            "No pod was running, and there were no nodes.",
        ),
        "<h2>Wait for a node, by priority</h2>",
        _waits("priority", results["waitsByPriority"]),
        "<h2>Wait for a node, by the plugins that last rejected the pod</h2>",
        _waits("reason", results["waitsByReason"]),
        "<h2>Fragmentation</h2>",
        '<p class="note">The share of free cores in pieces too small for an average pod.</p>',
        _lines(
            times,
            {"fragmentation": [one.fragmentation for one in samples]},
            "There was none." if pods["bound"] else "No pod was bound.",
            percent=True,
        ),
        "<h2>Preemption</h2>",
        f"<p>{pods['preemptions']:,} preemptions; {pods['victims']:,} pods were evicted.</p>",
        "<h2>Utilisation of nodes over time</h2>",
        '<p class="note">A row for each node, or for neighbours by name; a stronger colour is a fuller node.</p>',
        _heat(times, measures),
        "<h2>Work of plugins</h2>",
        '<p class="note">Number of evaluations of a node or a pod; equal pods share their results.</p>',
        _bars({name: (count, f"{count:,}") for name, count in results["pluginEvaluations"].items()}),
        *_times(plugin_seconds),
        _pending(results["pending"]),
        f'<p class="note">Kubestow {escaping.escape(results["kubestow"])}, seed {results["seed"]}.</p>',
    ]
    body = "\n".join(parts)
    return page(title, body)


def page(title: str, body: str) -> str:
    """Return a complete page; `title` and `body` are HTML."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'{_POLICY}<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def _cards(cards: dict[str, str]) -> str:
    each = (f'<div class="card"><b>{value}</b><span>{label}</span></div>' for label, value in cards.items())
    return f'<div class="cards">{"".join(each)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; the first column is text, the others are numbers."""
    first = "".join(f"<th>{escaping.escape(one)}</th>" for one in head)
    others = ("".join(f"<td>{escaping.escape(str(one))}</td>" for one in row) for row in rows)
    return f"<table><tr>{first}</tr>{''.join(f'<tr>{row}</tr>' for row in others)}</table>"


def _waits(what: str, groups: dict[str, dict[str, float]]) -> str:
    if not groups:
        return "<p>No pod was bound.</p>"
    columns = ("p50", "p90", "p95", "p99", "max")
    rows = [
        (key, f"{one['count']:,}", *(format_duration(one[name]) for name in columns)) for key, one in groups.items()
    ]
    return table((what, "pods", "median", "90 %", "95 %", "99 %", "longest"), rows)


def _scale(end: float, highest: float) -> tuple[float, float]:
    width = (_WIDTH - _LEFT - 10) / max(end, 1e-9)
    return width, (_HEIGHT - _BOTTOM - 10) / max(highest, 1e-9)


def _round_up(value: float) -> float:
    """Return a number of at least `value` whose quarters are easy to read."""
    unit = 4.0
    while unit < value:
        unit *= 2.5 if str(unit)[0] == "4" else 2.0
    return unit


def _lines(times: Sequence[float], series: dict[str, list[float]], nothing: str, *, percent: bool = False) -> str:
    """Return a chart with a line for each series over time; the sentence `nothing` if all values are zero."""
    if len(times) < _FEWEST_SAMPLES:
        return "<p>The simulation was too short for samples.</p>"
    if not any(map(any, series.values())):
        return f"<p>{nothing}</p>"
    highest = max(max(values) for values in series.values())
    highest = 1.0 if percent and highest <= 1.0 else _round_up(highest)
    across, up = _scale(times[-1], highest)
    parts = []
    for step in range(5):
        value, y = highest * step / 4, _HEIGHT - _BOTTOM - highest * step / 4 * up
        label = format_share(value) if percent else f"{value:,.4g}"
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        at = times[-1] * step / 4
        anchor = "end" if step == 4 else "middle"
        x = _LEFT + at * across
        when = format_duration(at) if at else "0"
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{when}</text>')
    keys = ""
    for (label, values), colour in zip(series.items(), _COLOURS, strict=False):
        points = " ".join(
            f"{_LEFT + time * across:.1f},{_HEIGHT - _BOTTOM - value * up:.1f}"
            for time, value in thinned(list(zip(times, values, strict=True)))
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{points}"/>')
        keys += f'<span class="key" style="background:{colour}"></span>{escaping.escape(label)}'
    chart = f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(parts)}</svg>'
    return f'<p class="note">{keys}</p>{chart}'


def thinned(points: list[Any], limit: int = 600) -> list[Any]:
    """Return at most `limit` evenly spaced points, including the first and the last."""
    if len(points) <= limit:
        return points
    return [points[index * (len(points) - 1) // (limit - 1)] for index in range(limit)]


def _heat(times: Sequence[float], measures: Measures) -> str:
    columns = thinned(list(zip(times, measures.heat, strict=True)), 120)
    rows = max((len(one) for _, one in columns), default=0)
    if len(columns) < _FEWEST_SAMPLES:
        return "<p>The simulation was too short for samples.</p>"
    if not rows:
        return "<p>There were no nodes.</p>"
    width, height = (_WIDTH - _LEFT - 10) / len(columns), max(min(14.0, 420.0 / rows), 4.0)
    cells = []
    for index, (_, column) in enumerate(columns):
        tall = rows * height / max(len(column), 1)
        for row, value in enumerate(column):
            cells.append(
                f'<rect x="{_LEFT + index * width:.1f}" y="{row * tall:.1f}" width="{width + 0.3:.1f}" '
                f'height="{tall + 0.2:.1f}" fill="var(--a)" fill-opacity="{min(float(value), 1.0):.2f}"/>'
            )
    total = rows * height
    frame = f'<rect x="{_LEFT}" y="0" width="{_WIDTH - _LEFT - 10}" height="{total:.1f}" fill="var(--card)"/>'
    label = (
        f'<text x="{_LEFT - 6}" y="12" text-anchor="end">nodes</text><text x="{_LEFT}" y="{total + 16:.1f}">0</text>'
    )
    end = f'<text x="{_WIDTH - 10}" y="{total + 16:.1f}" text-anchor="end">{format_duration(times[-1])}</text>'
    return f'<svg viewBox="0 0 {_WIDTH} {total + 22:.0f}" role="img">{frame}{"".join(cells)}{label}{end}</svg>'


def _times(plugin_seconds: dict[str, float]) -> list[str]:
    """Return the section on time in plugins, or a note on how to measure it."""
    note = "Measured on the machine that ran the simulation, in one of ten cycles; it differs from run to run."
    if not plugin_seconds:
        note = "Not measured, so that the same run produces the same report; measure it with --timings."
    bars = {name: (seconds, f"{seconds * 1000:.1f} ms") for name, seconds in plugin_seconds.items()}
    return ["<h2>Time in plugins</h2>", f'<p class="note">{note}</p>', _bars(bars) if bars else ""]


def _bars(values: dict[str, tuple[float, str]]) -> str:
    """Return a bar chart of the plugins, longest bar first; a value is the length of a bar and its label."""
    shown = [one for one in sorted(values.items(), key=lambda one: (-one[1][0], one[0])) if one[1][0] > 0][:12]
    if not shown:
        return "<p>No plugin was called.</p>"
    most, parts = shown[0][1][0], []
    for row, (name, (value, label)) in enumerate(shown):
        y, width = row * 20, (_WIDTH - 330) * value / most
        parts.append(f'<text x="230" y="{y + 14}" text-anchor="end">{escaping.escape(name)}</text>')
        parts.append(f'<rect x="240" y="{y + 3}" width="{max(width, 1):.1f}" height="14" fill="var(--a)" rx="2"/>')
        parts.append(f'<text x="{246 + width:.1f}" y="{y + 14}">{label}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {len(shown) * 20 + 6}" role="img">{"".join(parts)}</svg>'


def _pending(pending: list[dict[str, str]]) -> str:
    if not pending:
        return ""
    rows = [(one["pod"], one["message"] or "not attempted yet") for one in pending]
    return "<h2>Pending pods</h2>" + table(("pod", "reason"), rows)
