"""The output of `kubestow explain --patch`: a comment for each change, and its kubectl commands."""

from collections.abc import Iterator, Sequence

from kubestow.insight.explain.explanation import Explanation, GroupExplanation
from kubestow.insight.explain.overview import PendingOverview
from kubestow.insight.explain.world import ExplainError


def patch_lines(found: Explanation | GroupExplanation | PendingOverview) -> Iterator[str]:
    """Yield the lines for the first suggestion, or for each group of an overview. Raises ExplainError without any."""
    if isinstance(found, PendingOverview):
        for group in found.groups:
            if group.remedy is not None and group.remedy.commands:
                yield from _lines(f"{group.owner}: {group.remedy.change}", group.remedy.commands)
        return
    if isinstance(found, GroupExplanation):
        raise ExplainError(f"--patch applies to pods: name a pod of the group {found.decision.podGroup}")
    if found.decision.chosen:
        raise ExplainError(f"pod {found.decision.pod} needs no patch: it fits")
    if not found.commands:
        raise ExplainError(f"no change was found that kubectl can make for pod {found.decision.pod}")
    changes = {one.commands: one.change for one in found.would_fit_if}
    together = ", ".join(found.together.changes) if found.together is not None else ""
    yield from _lines(changes.get(found.commands, together), found.commands)


def _lines(change: str, commands: Sequence[str]) -> Iterator[str]:
    yield f"# {change}"
    yield from commands
