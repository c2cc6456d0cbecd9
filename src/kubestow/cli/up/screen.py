"""The screen of `kubestow up`: where the cluster is, what to type, nodes, queue and the last decisions.

It fills the terminal and is drawn again only when there is something new to see, a key was pressed, or the terminal
changed its size. With more nodes than fit, zones are shown in their place. Keys select a decision, list the pods of a
row, and limit the decisions to a namespace or an owner.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubestow import __version__
from kubestow.cli.up.keys import DOWN, ENTER, ESCAPE, UP, keys_to
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
_MOST_ROWS = 200
_MOST_PODS = 10
"""Maximum number of pods that are listed below a row."""
_WRAPPED = 3
"""Number of lines that a decision may take if all of them have as many."""
_GIB = 1024**3


async def show(console: Console, overview: Overview, head: "Head", last_warning: Callable[[], str]) -> None:
    """Show the screen until cancelled."""
    seen: object = None
    view, pressed = View(overview), asyncio.Event()

    def press(key: str) -> None:
        view.press(key)
        pressed.set()

    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    with keys_to(press, live.stop, partial(live.start, refresh=True)) as has_keys, live:
        while True:
            now = (overview.version, last_warning(), console.size, view.state)
            if now != seen:
                seen = now
                shown = view if has_keys else None
                live.update(render(overview, head, last_warning(), console.size, shown), refresh=True)
            pressed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await pressed.wait()


class View:
    """What the keys have chosen: a row, rows whose pods are listed, a namespace and an owner."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._selected: Hashable = None
        self.expanded: set[Hashable] = set()
        self.namespace = ""
        self.owner = ""

    @property
    def state(self) -> Hashable:
        """A value that changes with the view."""
        return self._selected, frozenset(self.expanded), self.namespace, self.owner

    def rows(self) -> list[Shown]:
        """Return the decisions of the chosen namespace and owner."""
        return self._overview.decisions(_MOST_ROWS, self.namespace, self.owner)

    def selected(self, rows: Sequence[Shown]) -> int:
        """Return the number of the selected row: the first one unless another was chosen and is still there."""
        return next((number for number, row in enumerate(rows) if row.key == self._selected), 0)

    def press(self, key: str) -> None:
        """Change the view as a key says; other keys are ignored."""
        rows = self.rows()
        number = self.selected(rows)
        if key in (UP, DOWN) and rows:
            self._selected = rows[max(0, min(len(rows) - 1, number + (1 if key == DOWN else -1)))].key
        elif key == ENTER and rows:
            self._selected = rows[number].key
            self.expanded ^= {self._selected}
        elif key == "n":
            known = ["", *self._overview.namespaces()]
            place = known.index(self.namespace) if self.namespace in known else 0
            self.namespace, self.owner = known[(place + 1) % len(known)], ""
        elif key == "o" and rows:
            self.owner = "" if self.owner else self._overview.owner_of(rows[number])
        elif key == ESCAPE:
            self.namespace, self.owner, self._selected, self.expanded = "", "", None, set()

    @property
    def hint(self) -> Text:
        """The keys, on one line."""
        where, whose = self.namespace or "all", self.owner or "all"
        keys = (
            ("↑↓", "select"),
            ("Enter", "pods"),
            ("n", f"namespace: {where}"),
            ("o", f"owner: {whose}"),
            ("Esc", "all"),
        )
        line = Text("KEYS", style="bold", no_wrap=True, overflow="ellipsis")
        for key, what in keys:
            line.append("  ").append(key, style="not bold cyan").append(f" {what}", style="not bold")
        return line


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


def render(
    overview: Overview, head: Head, warning: str, size: ConsoleDimensions, view: View | None = None
) -> RenderableType:
    """Return the screen. Decisions replace the hint once there are some. `view`: what the keys have chosen."""
    height = size.height
    decisions = overview.decisions(height) if view is None else view.rows()
    is_empty = not decisions and not (view is not None and (view.namespace or view.owner))
    parts: list[RenderableType] = [_title(overview, head.url)]
    if warning:
        parts.append(_line(warning, "yellow"))
    parts.append(_line(f"Page: {head.page}", "cyan"))
    room = height - len(parts) - _QUEUE_LINES - (_NO_DECISION_LINES if is_empty else _DECISION_LINES)
    room -= 0 if view is None else 1
    if not is_empty and overview.node_count + _TABLE_LINES + len(head.hint) + 1 > room:
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
    parts += [Text(), table, Text(), _queue(overview.queue), *([] if view is None else [view.hint]), Text()]
    below = height - len(parts) - len(table.rows) - _TABLE_LINES
    parts.append(
        Text("No pod has been scheduled yet.", style="dim")
        if is_empty
        else _decisions(decisions, view, below, size.width)
    )
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


def _decisions(decisions: list[Shown], view: View | None, room: int, width: int) -> Table:
    """Return the decisions from the one that makes the selected row visible."""
    table = _table("DECIDED", "POD", "RESULT")
    # Only the last column gives way to the others.
    table.columns[2].no_wrap = False
    selected = -1 if view is None else view.selected(decisions)
    pods = [_pods(shown) if view is not None and shown.key in view.expanded else [] for shown in decisions]
    wraps = _WRAPPED * sum(len(below) + 1 for below in pods) <= room
    first = max(selected, 0)
    while first and sum(len(below) + 1 for below in pods[first - 1 : selected + 1]) < room:
        first -= 1
    for number, shown in enumerate(decisions[first:], first):
        style = "reverse" if number == selected else ""
        result = _result(shown.record, wraps)
        result.no_wrap = not wraps
        table.add_row(_clock(shown.record.time), _shortened(shown.name, width), result, style=style)
        for name in pods[number]:
            table.add_row("", Text(f"  {_shortened(name, width - 4)}", style="dim"), "")
    return table


def _pods(shown: Shown) -> list[str]:
    """Return the pods of a row."""
    names = list(shown.pods.values()) or [shown.record.pod]
    more = len(names) - _MOST_PODS
    return [*names[:_MOST_PODS], *([f"and {more} more"] if more > 0 else [])]


def _shortened(name: str, width: int) -> str:
    """Return a name that leaves more than half of the width to the result; its end is what differs among pods."""
    half = max(width // 5, 8)
    return name if len(name) <= 2 * half else f"{name[: half - 1]}…{name[-half:]}"


def _result(record: Record, is_whole: bool) -> Text:
    """Return the result; without `is_whole`, only the reasons of a rejection."""
    if record.binding == WAITING:
        return Text.assemble((f"waits for {', '.join(record.permits)}", "yellow"), (f"  to go to {record.node}", "dim"))
    if record.outcome == SCHEDULED:
        details = f"  from {record.feasible} of {record.evaluated} nodes, {record.seconds * 1000:.2g} ms"
        return Text.assemble(("→ ", "green"), (record.node, "green"), (details, "dim"))
    nominated = f" (nominated to {record.nominated_node})" if record.nominated_node else ""
    message = record.message
    if not is_whole:
        message = message.partition(" preemption: ")[0].rpartition("nodes are available: ")[2]
    return Text(message + nominated, style="red" if record.outcome == ERROR else "yellow")


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    return table
