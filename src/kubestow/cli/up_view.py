"""The screen of `kubestow up`: where the cluster is, what to type, nodes, queue and the last decisions.

It fills the terminal and is drawn again only when there is something new to see or the terminal changed its size. With
more nodes than fit, zones are shown in their place.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubestow import __version__
from kubestow.cli.up_overview import Overview, Usage
from kubestow.reporting.decisions import ERROR, SCHEDULED, DecisionRecord

SECONDS = 0.2
"""How often to look for something new."""

_BAR = 10
_DECISION_LINES = 6
"""The fewest lines that decisions get, their heading and the empty line before included."""
_GIB = 1024**3


async def show(console: Console, overview: Overview, head: "Head", last_warning: Callable[[], str]) -> None:
    """Show what happens, until cancelled."""
    seen: object = None
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        while True:
            now = (overview.version, last_warning(), console.size)
            if now != seen:
                seen = now
                live.update(render(overview, head, last_warning(), console.size.height), refresh=True)
            await asyncio.sleep(SECONDS)


class Head:
    """What stays the same at the top of the screen."""

    def __init__(self, url: str, kubeconfig: str, commands: Iterable[str]) -> None:
        self.url = url
        self.lines = [Text(f"  export KUBECONFIG={kubeconfig}", overflow="fold", no_wrap=False)]
        self.lines += [Text(f"  {command}") for command in commands]


def render(overview: Overview, head: Head, warning: str, height: int) -> RenderableType:
    """All of the screen."""
    parts: list[RenderableType] = [_title(overview, head.url), Text()]
    parts += [Text("Type in another terminal (Ctrl-C here stops the cluster):", style="bold"), *head.lines, Text()]
    if warning:
        parts += [Text(warning, style="yellow", no_wrap=True, overflow="ellipsis"), Text()]
    room = height - len(parts) - _DECISION_LINES - 3
    one_by_one = overview.node_count <= max(room, 3)
    usages = overview.nodes() if one_by_one else overview.zones()
    parts += [_usages("NODE" if one_by_one else "ZONE", usages), Text(), _queue(overview.queue), Text()]
    decisions = overview.decisions(height)
    parts.append(_decisions(decisions) if decisions else Text("No pod has been scheduled yet.", style="dim"))
    return Group(*parts)


def _title(overview: Overview, url: str) -> Text:
    phases = [f"{count} {phase}" for phase, count in sorted(overview.phases.items()) if count]
    return Text.assemble(
        (f"Kubestow {__version__}", "bold green"),
        f"  {url}  ",
        (f"{overview.node_count} nodes", "bold"),
        "  pods: ",
        (", ".join(phases) or "none yet", "bold"),
    )


def _usages(heading: str, usages: list[Usage]) -> Table:
    table = _table(heading, "", "", "CPU", "MEMORY", "PODS")
    for usage in usages:
        used_cpu, cpu = usage.milli_cpu
        used_memory, memory = usage.memory
        table.add_row(
            usage.name,
            Text(usage.note, style="dim"),
            Text(usage.state, style="green" if usage.state == "ready" else "yellow"),
            _bar(used_cpu, cpu) + f" {used_cpu / 1000:.4g}/{cpu / 1000:.4g}",
            _bar(used_memory, memory) + f" {used_memory / _GIB:.3g}/{memory / _GIB:.4g}Gi",
            f"{usage.pods[0]}/{usage.pods[1]}",
        )
    return table


def _bar(used: int, total: int) -> Text:
    share = used / total if total else 1.0
    filled = min(_BAR, round(share * _BAR) or (1 if used else 0))
    colour = "green" if share < 0.7 else "yellow" if share < 0.9 else "red"
    return Text.assemble(("█" * filled, colour), ("░" * (_BAR - filled), "dim"))


def _queue(lengths: dict[str, int]) -> Text:
    line = Text("QUEUE", style="bold")
    for name, length in lengths.items():
        line.append("  ").append(f"{length} {name}", style="not bold yellow" if length else "not bold dim")
    return line


def _decisions(records: list[DecisionRecord]) -> Table:
    table = _table("DECIDED", "POD", "RESULT")
    table.columns[2].no_wrap = False
    for record in records:
        table.add_row(_clock(record.time), record.pod, _result(record))
    return table


def _result(record: DecisionRecord) -> Text:
    if record.outcome == SCHEDULED:
        details = f"  {record.feasible} of {record.evaluated} nodes fit, {record.seconds * 1000:.2g} ms"
        return Text.assemble(("→ ", "green"), (record.node, "green"), (details, "dim"))
    nominated = f" (waits for room on {record.node})" if record.node else ""
    return Text(record.message + nominated, style="red" if record.outcome == ERROR else "yellow")


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    return table
