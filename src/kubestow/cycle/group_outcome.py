"""What the cycle of a pod group comes to, and what was tried on the way."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kubestow.cluster.pods import PodInfo
from kubestow.config.configuration import Extender
from kubestow.cycle.outcome import Failed, Outcome, Placed
from kubestow.framework.placements import TriedGroup
from kubestow.framework.results import Code
from kubestow.model.pod import Pod

UNSCHEDULABLE_GROUP = "pod group is unschedulable"
WAITS_FOR_PREEMPTION = f"{UNSCHEDULABLE_GROUP}, pod group is waiting for preemption to complete"
_ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


class Tried(msgspec.Struct, frozen=True):
    """One placement that was tried, for those who want to know why it was not to be."""

    placement: str
    """The name of the placement; empty where it is all nodes."""
    nodes: int
    placed: int
    """How many of the group's pods found a node there."""
    failures: tuple[str, ...]
    """What kept the others from it, each message once; empty if all fit, or nobody asks."""


class GroupOutcome(msgspec.Struct, frozen=True):
    """How a group fared, and each of its pods."""

    code: Code
    message: str
    outcomes: Sequence[Outcome]
    """Of its pods, in their order. Where the group is scheduled, the pods that are Placed are to be bound."""
    waits_for_preemption: bool = False
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict for the group as a whole."""
    preempting_plugin: str = ""
    nominated: tuple[str, ...] = ()
    """By pod, the node it will have once the victims are gone; empty for none."""
    tried: tuple[Tried, ...] = ()
    placement: str = ""
    """The name of the one that was chosen."""
    revision: int = 0
    """Of the cluster, when the cycle started."""
    extenders: tuple[Extender, ...] = ()
    """Those of the configuration that was in use."""


class Trial(msgspec.Struct, frozen=True):
    """A group tried within one placement: what is Placed is taken, until it is given back."""

    code: Code
    message: str
    outcomes: list[Outcome]
    placement: str = ""
    """Its name."""
    waits_for_preemption: bool = False
    preempting: dict[int, Failed] = msgspec.field(default_factory=dict)
    """By number, pods that are placed as if their victims were gone, and how they failed before."""
    nominations: list[tuple[Pod, str]] = msgspec.field(default_factory=list)
    """Pods that were nominated to a node before they were placed."""
    other_plugins: frozenset[str] = frozenset()
    """Who rejected pods of the group in other trials."""

    @property
    def is_refused(self) -> bool:
        """Whether the group will not do, nor would it if pods were evicted."""
        return self.code is Code.UNSCHEDULABLE and not self.waits_for_preemption

    @property
    def placed(self) -> list[Placed]:
        return [outcome for outcome in self.outcomes if isinstance(outcome, Placed)]

    @property
    def plugins(self) -> frozenset[str]:
        """Who rejected pods of the group."""
        failed = [outcome for outcome in self.outcomes if isinstance(outcome, Failed)]
        return frozenset().union(*(one.plugins | one.pending_plugins for one in failed))


def _waiting_words(placed: Placed) -> str:
    """Why a pod that has found a node must do without it."""
    if not placed.waits:
        return f"{UNSCHEDULABLE_GROUP}, "
    reasons = (UNSCHEDULABLE_GROUP, placed.waits_for, _ASKED_TO_WAIT)
    return ", ".join(reason for reason in reasons if reason)


def refused_outcomes(group: GroupOutcome, trial: Trial, tried: TriedGroup) -> list[Outcome]:
    """Return what becomes of each pod of a group that is not scheduled."""
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
    # The plugins that made it wait are of no help, unless no other plugin stands in the way.
    return Failed(Code.UNSCHEDULABLE, _waiting_words(outcome), plugins or frozenset(outcome.waits))
