"""The outcome of the cycle of a pod group, and the trials that led to it."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.config.configuration import Extender
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.results import Code

UNSCHEDULABLE_GROUP = "pod group is unschedulable"
WAITS_FOR_PREEMPTION = f"{UNSCHEDULABLE_GROUP}, pod group is waiting for preemption to complete"
_ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


class TriedPlacement(msgspec.Struct, frozen=True):
    """The result of one placement that was tried, for explanations."""

    placement: str
    """The name of the placement; empty for all nodes."""
    nodes: int
    placed: int
    """Number of the group's pods that found a node."""
    failures: tuple[str, ...]
    """The distinct messages of the other pods; empty if all fit, or if failures are not collected."""


class GroupOutcome(msgspec.Struct, frozen=True):
    """The outcome for a group, and for each of its pods."""

    code: Code
    message: str
    outcomes: Sequence[Outcome]
    """The outcome of each pod. If `code` is SUCCESS, the placed pods are to be bound."""
    waits_for_preemption: bool = False
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict for the group as a whole."""
    preempting_plugin: str = ""
    nominated: tuple[str, ...] = ()
    """By pod, the node that it will have after the evictions; empty for none."""
    tried: tuple[TriedPlacement, ...] = ()
    placement: str = ""
    """The name of the chosen placement."""
    revision: int = 0
    """The revision of the cluster when the cycle started."""
    extenders: tuple[Extender, ...] = ()
    """The extenders that were configured then."""


class Trial(msgspec.Struct, frozen=True):
    """The result of trying a group in one placement. Its placed pods are reserved until the trial is undone."""

    code: Code
    message: str
    outcomes: list[Outcome]
    placement: str = ""
    """The name of the placement."""
    waits_for_preemption: bool = False
    preempting: dict[int, Failed] = msgspec.field(default_factory=dict)
    """By index, the failures of pods that are placed as if their victims were gone."""
    nominations: list[tuple[Pod, str]] = msgspec.field(default_factory=list)
    """The nominations of the placed pods, which were removed."""
    other_plugins: frozenset[str] = frozenset()
    """The plugins that rejected pods of the group in other trials."""

    @property
    def is_rejected(self) -> bool:
        """Whether the group is unschedulable, and not because it waits for evictions."""
        return self.code is Code.UNSCHEDULABLE and not self.waits_for_preemption

    @property
    def placed(self) -> list[Placed]:
        return [outcome for outcome in self.outcomes if isinstance(outcome, Placed)]

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected pods of the group."""
        failed = [outcome for outcome in self.outcomes if isinstance(outcome, Failed)]
        return frozenset().union(*(one.plugins | one.pending_plugins for one in failed))


def _waiting_message(placed: Placed) -> str:
    """Return why a pod that has found a node does not get it."""
    if not placed.waits:
        return f"{UNSCHEDULABLE_GROUP}, "
    reasons = (UNSCHEDULABLE_GROUP, placed.wait_reason, _ASKED_TO_WAIT)
    return ", ".join(reason for reason in reasons if reason)


def refused_outcomes(group: GroupOutcome, trial: Trial, tried: TriedGroup) -> list[Outcome]:
    """Return the outcome of each pod of a group that is not scheduled."""
    searched = [outcome.searched for outcome in trial.outcomes]
    searched += [None] * (len(tried.pods) - len(searched))
    plugins = trial.plugins | trial.other_plugins
    return [
        replace(_refused(group, trial, number, plugins), searched=searched[number]) for number in range(len(tried.pods))
    ]


def _refused(group: GroupOutcome, trial: Trial, number: int, plugins: frozenset[str]) -> Failed:
    """Return the outcome of one pod; `plugins` are those that rejected any pod of the group.

    An event that may help any pod of the group may help the group.
    """
    outcome = trial.outcomes[number] if number < len(trial.outcomes) else None
    if group.code is Code.ERROR:
        if isinstance(outcome, Failed) and not outcome.is_rejection:
            return outcome
        return Failed(Code.ERROR, group.message)
    if outcome is None:
        return Failed(group.code, group.message)
    preempting = trial.preempting.get(number)
    nominated = group.nominated[number] if group.nominated else ""
    if preempting is not None and group.waits_for_preemption:
        return preempting
    if isinstance(outcome, Failed):
        return replace(outcome, plugins=plugins, nominated_node=nominated or outcome.nominated_node)
    if group.waits_for_preemption:
        return Failed(Code.UNSCHEDULABLE, group.message, plugins, nominated_node=nominated or outcome.node)
    # Events of the plugins that made it wait cannot help, unless no other plugin rejected a pod.
    return Failed(Code.UNSCHEDULABLE, _waiting_message(outcome), plugins or frozenset(outcome.waits))
