"""The nodes in `kubestow explain`: reasons of rejected nodes, scores of the best, one node, and tables of all."""

from collections.abc import Iterator

from kubestow.cli.explain.lines import (
    SHOWN_NAMES,
    WIDTH,
    examples,
    format_node_count,
    format_other_count,
    headings,
    row,
    shortened,
    table,
    title,
    wrapped,
)
from kubestow.cli.terminal import style
from kubestow.insight.decisions.schema import Decision, NodeResult, Rejected

_GROUPS = 8
_SCORE_COLUMN = 32
_MOST_SCORED = 4


# Why not elsewhere


def rejected_pod(decision: Decision) -> Iterator[str]:
    """Yield the plugin that rejected the pod before any node was evaluated."""
    refused = decision.preFilter.rejected
    if refused is not None:
        yield title("Why not")
        yield from row(decision.nodeCount, _refusal(refused), "on all nodes: no node was evaluated")


def rejection_reasons(decision: Decision) -> Iterator[str]:
    """Yield the reasons of rejected nodes and their counts; nothing where the pod itself was rejected."""
    groups, left_out = _groups(decision), list(not_evaluated(decision))
    if decision.preFilter.rejected is not None or not (groups or left_out or decision.nodesDropped):
        return
    yield title("Why not elsewhere" if decision.chosen else "Why not")
    yield from wrapped(decision.nodesDropped, "  ")
    for what, names in groups[:_GROUPS]:
        yield from row(len(names), what, examples(names))
    if len(groups) > _GROUPS:
        rest = groups[_GROUPS:]
        yield f"  {sum(len(names) for _, names in rest):>6}  nodes for {len(rest)} other reasons; see -o wide"
    yield from left_out
    yield from reservations(decision)


def not_evaluated(decision: Decision) -> Iterator[str]:
    """Yield the number of nodes that were not evaluated."""
    if decision.preFilter.rejected is not None:
        return
    outside = 0 if decision.placement is None else decision.nodeCount - decision.placement.nodes
    left_out = decision.nodeCount - decision.evaluated - outside
    if left_out:
        by = ", ".join(decision.preFilter.narrowedBy)
        left = f"{by}: excluded before any node was evaluated" if by else f"not evaluated: {_cut_short(decision)}"
        yield from row(left_out, left, "")
    if outside:
        yield from row(outside, f"not evaluated: {_outside(decision)}", "")


def reservations(decision: Decision, node: str = "") -> Iterator[str]:
    """Yield the nominated pods that resources of nodes, or of one node, are reserved for."""
    kept = [one for one in decision.nominated if node in ("", one.node)]
    if kept:
        pods = [one.pod if node else f"{one.pod} on {one.node}" for one in kept[:SHOWN_NAMES]]
        more = f" and {len(kept) - len(pods)} more" if len(kept) > len(pods) else ""
        yield from wrapped(f"resources are reserved for nominated pods: {', '.join(pods)}{more}", "  ")


def _cut_short(decision: Decision) -> str:
    if decision.choice is not None and decision.choice.reason == "nominated":
        return "its nominated node was evaluated first and is feasible"
    if decision.choice is not None and decision.choice.reason == "first":
        return "one feasible node is enough where nothing is scored"
    return "the attempt failed" if decision.outcome == "error" else "enough feasible nodes were found"


def _outside(decision: Decision) -> str:
    where = "" if decision.placement is None else decision.placement.name
    return f"outside {where}, where its pod group was tried"


def _groups(decision: Decision) -> list[tuple[str, list[str]]]:
    """Return the rejected nodes grouped by reason, largest group first."""
    found: dict[str, list[str]] = {}
    for name, result in decision.by_node.items():
        if result.rejected is not None:
            found.setdefault(_refusal(result.rejected), []).append(name)
    return sorted(found.items(), key=lambda group: (-len(group[1]), group[0]))


def _refusal(rejected: Rejected) -> str:
    plugins = ", ".join((rejected.plugin, *rejected.others)) or "unknown"
    return f"{plugins}: {', '.join(rejected.reasons) or rejected.code}"


# Scores


def scores(decision: Decision) -> Iterator[str]:
    """Yield a table of the best nodes: a column per node, a row per plugin."""
    scored = _scored(decision)
    plugins = [name for name in decision.weights if any((result.plugins or {}).get(name) for _, result in scored)]
    if not scored or not plugins:
        return
    names = headings([name for name, _ in scored[:_MOST_SCORED]])
    width = max(8, *(len(name) for name in names)) + 2
    shown = max(1, (WIDTH - _SCORE_COLUMN - 2) // width)
    yield title("Scores") + f" of the best {min(shown, len(scored))} of {format_node_count(len(scored))}, weighted"
    yield f"  {'':{_SCORE_COLUMN}}" + "".join(f"{name:>{width}}" for name in names[:shown])
    for plugin in plugins:
        cells = ((result.plugins or {}).get(plugin) for _, result in scored[:shown])
        label = f"{plugin} (x{decision.weights[plugin]})" if decision.weights[plugin] != 1 else plugin
        yield f"  {shortened(label, _SCORE_COLUMN):<{_SCORE_COLUMN}}" + "".join(
            f"{'-' if cell is None else cell:>{width}}" for cell in cells
        )
    if any(result.extenders for _, result in scored[:shown]):
        yield f"  {'extenders':<{_SCORE_COLUMN}}" + "".join(f"{one.extenders:>{width}}" for _, one in scored[:shown])
    totals = "".join(f"{result.total:>{width}}" for _, result in scored[:shown])
    yield style(f"  {'total':<{_SCORE_COLUMN}}{totals}", bold=True)


def _scored(decision: Decision) -> list[tuple[str, NodeResult]]:
    """Return the scored nodes, best first; the chosen one precedes nodes with the same score."""
    found = [(name, result) for name, result in decision.by_node.items() if result.total is not None]
    return sorted(found, key=lambda one: (-(one[1].total or 0), one[0] != decision.chosen, one[0]))


# One node, and all of them


def one_node(decision: Decision, name: str) -> Iterator[str]:
    """Yield everything that was recorded about a node."""
    result = decision.by_node.get(name)
    yield title(f"Node {name}")
    if result is None:
        by, refused = ", ".join(decision.preFilter.narrowedBy), decision.preFilter.rejected
        enough = _cut_short(decision)
        if decision.placement is not None:
            enough = _outside(decision) + ("" if decision.evaluated >= decision.placement.nodes else f", or {enough}")
        if refused is not None:
            yield from wrapped(f"was not evaluated: {refused.plugin} refuses the pod on all nodes.", "  ")
        elif decision.nodesDropped:
            yield from wrapped(f"{decision.nodesDropped}.", "  ")
        else:
            yield from wrapped(f"was excluded by {by}." if by else f"was not evaluated: {enough}.", "  ")
    elif result.rejected is not None:
        rejected = result.rejected
        yield from wrapped(f"refused by {', '.join((rejected.plugin, *rejected.others))} ({rejected.code})", "  ")
        for reason in rejected.reasons:
            yield from wrapped(reason, "    ")
        yield from reservations(decision, name)
    elif result.total is None:
        yield "  is feasible; its score was not needed."
    else:
        totals = [scored.total or 0 for _, scored in _scored(decision)]
        higher, same = sum(total > result.total for total in totals), totals.count(result.total) - 1
        like = f", with {format_other_count(same)}" if same else ""
        yield f"  is feasible; rank {higher + 1} of {len(totals)} by score{like}"
        yield f"  {'':{_SCORE_COLUMN}}{'raw':>16}{'normalised':>12}{'weighted':>12}"
        for plugin, score in (result.plugins or {}).items():
            raw, normalized = result.raw.get(plugin, ""), result.normalized.get(plugin, "")
            yield f"  {shortened(plugin, _SCORE_COLUMN - 1):<{_SCORE_COLUMN}}{raw:>16}{normalized:>12}{score:>12}"
        if result.extenders:
            yield f"  {'extenders':<{_SCORE_COLUMN}}{'':>28}{result.extenders:>12}"
        yield style(f"  {'total':<{_SCORE_COLUMN}}{'':>28}{result.total:>12}", bold=True)


def all_rejected(decision: Decision) -> Iterator[str]:
    """Yield a table of the rejected nodes."""
    rows = [
        (name, ",".join((one.plugin, *one.others)), one.code, ", ".join(one.reasons))
        for name, result in decision.by_node.items()
        if (one := result.rejected) is not None
    ]
    if rows:
        yield from table([("NODE", "PLUGIN", "CODE", "REASONS"), *rows])


def all_scored(decision: Decision) -> Iterator[str]:
    """Yield a table of the scored nodes, best first."""
    scored, plugins = _scored(decision), list(decision.weights)
    rows = [
        (name, str(result.total), *(str((result.plugins or {}).get(plugin, "-")) for plugin in plugins))
        for name, result in scored
    ]
    head: tuple[str, ...] = ("NODE", "TOTAL", *(plugin.upper() for plugin in plugins))
    if any(result.extenders for _, result in scored):
        head = (*head, "EXTENDERS")
        rows = [(*row, str(result.extenders)) for row, (_, result) in zip(rows, scored, strict=True)]
    if rows:
        yield from table([head, *rows])
