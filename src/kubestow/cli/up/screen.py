"""The screen of `kubestow up`: where the cluster is, what to type, nodes, queue and the last decisions.

It fills the terminal and is drawn again only when there is something new to see or the terminal changed its size. With
more nodes than fit, zones are shown in their place.
"""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubestow import __version__
from kubestow.cli.up.overview import Overview, Shown, Usage
from kubestow.insight.decisions.record import WAITING, Record
from kubestow.insight.decisions.schema import ERROR, SCHEDULED

SECONDS = 0.2
"""The polling interval."""

_BAR = 10
_TABLE_LINES = 2
"""The heading of nodes, and the empty line before it."""
_QUEUE_LINES = 2
_DECISION_LINES = 6
"""The fewest lines that decisions get, with the heading and the empty line before it."""
_NO_DECISION_LINES = 2
_FEWEST_ROWS = 3
_GIB = 1024**3


async def show(console: Console, overview: Overview, head: "Head", last_warning: Callable[[], str]) -> None:
    """Show the screen until cancelled."""
    seen: object = None
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        while True:
            now = (overview.version, last_warning(), console.size)
            if now != seen:
                seen = now
                live.update(render(overview, head, last_warning(), console.size.height), refresh=True)
            await asyncio.sleep(SECONDS)


class Head(NamedTuple):
    """The constant part at the top of the screen."""

    url: str
    page: str
    kubeconfig: str
    commands: tuple[str, ...]

    @property
    def hint(self) -> list[Text]:
        """Commands to try, and how to stop."""
        first = Text("In another terminal (Ctrl-C here stops the cluster):", style="bold")
        return [first, *(Text(f"  {command}") for command in (f"export KUBECONFIG={self.kubeconfig}", *self.commands))]


def render(overview: Overview, head: Head, warning: str, height: int) -> RenderableType:
    """Return the screen. Decisions replace the hint once there are some."""
    decisions = overview.decisions(height)
    parts: list[RenderableType] = [_title(overview, head.url)]
    if warning:
        parts.append(_line(warning, "yellow"))
    parts.append(_line(f"Page: {head.page}", "cyan"))
    room = height - len(parts) - _QUEUE_LINES - (_DECISION_LINES if decisions else _NO_DECISION_LINES)
    if decisions and overview.node_count + _TABLE_LINES + len(head.hint) + 1 > room:
        parts.append(_line(f"export KUBECONFIG={head.kubeconfig}", "dim"))
        room -= 1
    else:
        parts += [Text(), *head.hint]
        room -= len(head.hint) + 1
    rows = max(room - _TABLE_LINES, _FEWEST_ROWS)
    if overview.node_count <= rows:
        table = _usages(("NODE", "ZONE", "STATE"), overview.nodes(), rows)
    else:
        table = _usages(("ZONE", "NODES", ""), overview.zones(), rows)
    parts += [Text(), table, Text(), _queue(overview.queue), Text()]
    parts.append(_decisions(decisions) if decisions else Text("No pod has been scheduled yet.", style="dim"))
    return Group(*parts)


def _title(overview: Overview, url: str) -> Text:
    phases = [f"{count} {phase}" for phase, count in sorted(overview.phases.items()) if count]
    return Text.assemble(
        (f"Kubestow {__version__}", "bold green"),
        f"  {url}  ",
        "nodes: ",
        (str(overview.node_count), "bold"),
        "  pods: ",
        (", ".join(phases) or "none yet", "bold"),
        no_wrap=True,
        overflow="ellipsis",
    )


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _usages(headings: tuple[str, ...], usages: list[Usage], rows: int) -> Table:
    table = _table(*headings, "CPU", "MEMORY", "PODS")
    shown = usages if len(usages) <= rows else usages[: rows - 1]
    for usage in shown:
        used_cpu, cpu = usage.milli_cpu
        used_memory, memory = usage.memory
        table.add_row(
            usage.name,
            Text(usage.note, style="dim"),
            Text(usage.state, style="green" if usage.state == "ready" else "yellow"),
            _bar(used_cpu, cpu) + f" {_short(used_cpu / 1000)}/{_short(cpu / 1000)}",
            _bar(used_memory, memory) + f" {_short(used_memory / _GIB)}/{_short(memory / _GIB)}Gi",
            f"{usage.pods[0]}/{usage.pods[1]}",
        )
    if len(shown) < len(usages):
        table.add_row(Text(f"and {len(usages) - len(shown)} more", style="dim"))
    return table


def _short(amount: float) -> str:
    return f"{amount:.3g}" if amount < 100 else f"{amount:.0f}"


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


def _decisions(decisions: list[Shown]) -> Table:
    table = _table("DECIDED", "POD", "RESULT")
    table.columns[2].no_wrap = False
    for shown in decisions:
        table.add_row(_clock(shown.record.time), shown.name, _result(shown.record))
    return table


def _result(record: Record) -> Text:
    if record.binding == WAITING:
        return Text.assemble((f"waits for {', '.join(record.permits)}", "yellow"), (f"  to go to {record.node}", "dim"))
    if record.outcome == SCHEDULED:
        details = f"  from {record.feasible} of {record.evaluated} nodes, {record.seconds * 1000:.2g} ms"
        return Text.assemble(("→ ", "green"), (record.node, "green"), (details, "dim"))
    nominated = f" (nominated to {record.nominated_node})" if record.nominated_node else ""
    return Text(record.message + nominated, style="red" if record.outcome == ERROR else "yellow")


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    return table
