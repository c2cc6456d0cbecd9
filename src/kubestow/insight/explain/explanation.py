"""What is told about a pod: the decision, where it comes from, and what would change it."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from kubestow.insight.decisions.schema import ERROR, SCHEDULED, UNSCHEDULABLE, Decision, GroupDecision, Queue
from kubestow.insight.explain.against import Against, against
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.group_run import GroupRun
from kubestow.insight.explain.group_would_fit import GroupSuggestion, group_would_fit_if
from kubestow.insight.explain.world import ExplainError
from kubestow.insight.explain.would_fit import Suggestion, would_fit_if


class Explanation(NamedTuple):
    """A decision and more beside."""

    decision: Decision
    source: str
    """`dry run`, or `scheduler` if it is the scheduler's own record."""
    would_fit_if: tuple[Suggestion, ...] = ()
    against: Against | None = None
    notes: tuple[str, ...] = ()
    """What the reader must know about how it was found."""

    is_stuck: bool = False
    """Whether changes were looked for, and none was found."""

    def knows(self, node: str) -> bool:
        """Whether a node was evaluated."""
        return node in self.decision.by_node

    def about(self, node: str) -> Self:
        """The same about one node only; raises ExplainError if there was no such node, as far as is known."""
        decision, nodes = self.decision, self.decision.by_node
        if node not in nodes and nodes and decision.evaluated == decision.nodeCount:
            raise ExplainError(f"there was no node {node} when pod {decision.pod} was tried")
        return self._replace(decision=replace(decision, nodes={node: nodes[node]} if node in nodes else {}))

    def undated(self) -> Self:
        """The same whenever it is found: a dry run is of now."""
        if self.source != "dry run":
            return self
        return self._replace(decision=replace(self.decision, time="", queue=Queue()))

    def tree(self) -> dict[str, Any]:
        """As JSON has it: the fields of the decision, and what comes beside them."""
        more = {"source": self.source, "wouldFitIf": self.would_fit_if, "against": self.against, "notes": self.notes}
        return _tree(self.decision, more)


class GroupExplanation(NamedTuple):
    """The same about a pod group."""

    decision: GroupDecision
    source: str
    would_fit_if: tuple[GroupSuggestion, ...] = ()
    notes: tuple[str, ...] = ()
    against: str = ""
    """The only placement that was tried, if it is about one."""
    is_stuck: bool = False
    """Whether changes were looked for, and none was found."""

    def about(self, node: str) -> Self:
        """Raises ExplainError: what is said of nodes is said to pods."""
        pod = next(iter(self.decision.members), "NAMESPACE/POD")
        raise ExplainError(f"--node is about a pod: ask about one of the group, kubestow explain {pod} --node {node}")

    def undated(self) -> Self:
        """The same whenever it is found: a dry run is of now."""
        return self if self.source != "dry run" else self._replace(decision=replace(self.decision, time=""))

    def tree(self) -> dict[str, Any]:
        """As JSON has it."""
        more = {"source": self.source, "against": self.against, "wouldFitIf": self.would_fit_if, "notes": self.notes}
        return _tree(self.decision, more)


def _tree(decision: Decision | GroupDecision, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a decision, and those of `more` that are not empty."""
    tree: dict[str, Any] = msgspec.to_builtins(decision)
    return tree | {name: msgspec.to_builtins(value) for name, value in more.items() if value}


def explained_group(run: GroupRun, against: str = "", notes: tuple[str, ...] = ()) -> GroupExplanation:
    """A trial of a pod group, with what would help; or of one placement, or a node's; raises ExplainError."""
    decision = run.decision()
    if against:
        run = run.against(against)
        elsewhere = decision.placement if decision.placement != run.only else ""
        notes += (f"left to itself it would go to {elsewhere}.",) if elsewhere else ()
        decision = run.decision()
    would_fit = () if decision.outcome == SCHEDULED else tuple(group_would_fit_if(run))
    is_stuck = decision.outcome == UNSCHEDULABLE and not would_fit
    return GroupExplanation(decision, "dry run", would_fit, notes, run.only, is_stuck)


def explained(run: DryRun, node: str = "", notes: tuple[str, ...] = ()) -> Explanation:
    """A dry run with what would help, or with what `node` has against the pod; raises ExplainError."""
    decision = run.decision()
    if decision.outcome == ERROR and not decision.nodes:
        # Nothing was judged: there is nothing to compare with.
        return Explanation(decision, "dry run", notes=notes)
    would_fit = () if decision.chosen or node else tuple(would_fit_if(run))
    is_stuck = decision.outcome == UNSCHEDULABLE and decision.nodeCount > 0 and not (would_fit or node)
    return Explanation(decision, "dry run", would_fit, against(run, node) if node else None, notes, is_stuck)
