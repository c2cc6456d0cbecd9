"""The outcome of the cycle of a pod group, and the trials that led to it."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from kubestow.config.configuration import Extender
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed, SearchedNodes
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.results import Code

UNSCHEDULABLE_GROUP = "pod group is unschedulable"


class TriedPlacement(msgspec.Struct, frozen=True):
    """The result of one placement that was tried, for explanations."""

    placement: str
    """The name of the placement; empty for all nodes."""
    nodes: int
    placed: int
    """Number of the group's pods that found a node."""
    failures: tuple[str, ...]
    """The distinct messages of the other pods; empty if all fit, or if failures are not collected."""
    fits: bool = False
    """Whether the group fits in it."""
    seconds: float = 0.0
    """Time to find that out."""


class Status(msgspec.Struct, frozen=True):
    """The status of a group, of which messages are made."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    is_verdict: bool = False
    """Whether it is about the group as a whole, as opposed to how many pods fit: its messages say so first."""

    @property
    def message(self) -> str:
        return ", ".join((UNSCHEDULABLE_GROUP, *self.reasons) if self.is_verdict else self.reasons)

    @property
    def summary(self) -> str:
        """The message within that of another status."""
        return UNSCHEDULABLE_GROUP if self.is_verdict else self.message

    def with_reason(self, reason: str) -> "Status":
        return replace(self, reasons=(*self.reasons, reason))


def unschedulable_group(*reasons: str) -> Status:
    """Return the verdict that a group is unschedulable."""
    return Status(Code.UNSCHEDULABLE, reasons, is_verdict=True)


def failed_group(message: str) -> Status:
    """Return the status of a group whose cycle failed with an error."""
    return Status(Code.ERROR, (message,))


class Trial(msgspec.Struct, frozen=True):
    """The result of trying a group in one placement. Its placed pods are reserved until the trial is undone."""

    status: Status
    outcomes: Sequence[Outcome] = ()
    """The outcomes of the first pods; the others were not tried."""
    placement: str = ""
    """The name of the placement."""
    tried: tuple[TriedPlacement, ...] = ()
    """All placements that were tried."""
    parts: Sequence["Trial"] = ()
    """Of a composite pod group, the trials of its first groups; the others were not tried."""

    @property
    def fits(self) -> bool:
        return self.status.code is Code.SUCCESS

    @property
    def placed(self) -> list[Placed]:
        """The pods that found a node; in a composite pod group, those of the groups that fit."""
        own = [outcome for outcome in self.outcomes if isinstance(outcome, Placed)]
        return own + [placed for part in self.parts if part.fits for placed in part.placed]

    def by_group(self, group: TriedGroup, above: "Trial | None" = None) -> Iterator[tuple[TriedGroup, "Trial"]]:
        """Yield the pod groups of a tree, each with its trial.

        A group that fits, in a composite pod group that does not, has no outcomes but the status of that group, like
        one that was not tried.
        """
        trial = self
        if above is not None and self.fits and not above.fits:
            trial = replace(self, status=above.status, outcomes=())
        if not group.is_composite:
            yield group, trial
        untried = [Trial(trial.status)] * (len(group.children) - len(self.parts))
        for child, part in zip(group.children, (*self.parts, *untried), strict=True):
            yield from part.by_group(child, trial)


class PostFiltered(msgspec.Struct, frozen=True):
    """What PodGroupPostFilter found for a group that does not fit."""

    code: Code
    message: str = ""
    victims: tuple[PodInfo, ...] = ()
    plugin: str = ""
    """The plugin that chose the victims."""
    disruptions: int = 0
    """Number of groups, and of single pods of groups, among the victims."""
    budgets_broken: int = 0
    """Number of evictions that violate a disruption budget."""
    nodes: dict[str, str] = {}
    """By UID, the nodes that the pods will have once the victims are gone."""
    attempted: Code | None = None
    """The result of the attempt to preempt; None if there was none."""
    seconds: float | None = None
    """Time to find the victims; None if none were searched for."""


NOT_FILTERED = PostFiltered(Code.SKIP)
"""Stands for a group that fits, or failed with an error."""


class GroupOutcome(msgspec.Struct, frozen=True):
    """The outcome for a group, and for each of its pods."""

    code: Code
    message: str
    outcomes: Sequence[Outcome]
    """The outcome of each pod. If `code` is SUCCESS, the placed pods are to be bound."""
    found: PostFiltered = NOT_FILTERED
    tried: tuple[TriedPlacement, ...] = ()
    evaluated: tuple[TriedPlacement, ...] = ()
    """All placements in which a pod group was tried: in a tree, within each one of its parent; and for preemption."""
    placement: str = ""
    """The name of the chosen placement."""
    revision: int = 0
    """The revision of the cluster when the cycle started."""
    extenders: tuple[Extender, ...] = ()
    """The extenders that were configured then."""
    scheduled: int = 0
    """Number of its pods that had a node before."""
    leaves: "Sequence[GroupOutcome]" = ()
    """Of a composite pod group, the outcomes of the pod groups of the tree."""

    @property
    def waits_for_preemption(self) -> bool:
        return self.found.code is Code.SUCCESS


def refused_outcomes(
    status: Status, trial: Trial, found: PostFiltered, group: TriedGroup, untried: SearchedNodes
) -> list[Outcome]:
    """Return the outcome of each pod of a group that is not scheduled; `status` is the final one of the group."""
    outcomes = [*trial.outcomes, *[None] * (len(group.pods) - len(trial.outcomes))]
    return [
        _refused(status, trial, found, outcome, pod.uid, untried if outcome is None else outcome.searched)
        for outcome, pod in zip(outcomes, group.pods, strict=True)
    ]


def _refused(
    status: Status,
    trial: Trial,
    found: PostFiltered,
    outcome: Outcome | None,
    uid: str,
    searched: SearchedNodes | None,
) -> Failed:
    if status.code is Code.ERROR:
        if isinstance(outcome, Failed) and not outcome.is_rejection:
            return outcome
        return Failed(Code.ERROR, status.message, searched=searched)
    waits = found.code is Code.SUCCESS
    nominated = found.nodes.get(uid)
    if isinstance(outcome, Failed):
        return replace(outcome, nominated_node=outcome.nominated_node if nominated is None else nominated)
    if outcome is None:
        # It has the status from before PodGroupPostFilter.
        return Failed(Code.UNSCHEDULABLE, trial.status.message, nominated_node=nominated, searched=searched)
    message = status.message if waits else f"{UNSCHEDULABLE_GROUP}, {status.message}"
    return Failed(Code.UNSCHEDULABLE, message, nominated_node=nominated if waits else "", searched=searched)
