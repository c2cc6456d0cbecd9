"""PodDisruptionBudgets: determines which evictions would violate one."""

from collections.abc import Iterable, Sequence

import msgspec

from kubestow.api.labels import Selector, SelectorError, compile_selector
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.scheduler.cluster.pods import PodInfo


class _Budget(msgspec.Struct, frozen=True):
    number: int
    selector: Selector
    disruptions_allowed: int
    disrupted: frozenset[str]
    """Names of pods whose eviction the budget counts already."""


class Budgets(msgspec.Struct):
    """A snapshot of the disruption budgets."""

    by_namespace: dict[str, list[_Budget]]

    def __bool__(self) -> bool:
        return bool(self.by_namespace)

    def broken_by(self, pods: Sequence[PodInfo]) -> list[bool]:
        """Return for each pod whether evicting it, after the pods before it in the list, violates a budget."""
        left: dict[int, int] = {}
        return [self._breaks(pod, left) for pod in pods]

    def number_broken_by(self, units: Sequence[Sequence[PodInfo]]) -> list[int]:
        """Return for each unit of pods, evicted together after the units before it, how many violate a budget."""
        left: dict[int, int] = {}
        return [sum([self._breaks(pod, left) for pod in unit]) for unit in units]

    def _breaks(self, pod: PodInfo, left: dict[int, int]) -> bool:
        budgets = self.by_namespace.get(pod.namespace)
        if budgets is None or not pod.labels:
            return False
        for budget in budgets:
            if budget.selector.matches(pod.labels) and pod.name not in budget.disrupted:
                left[budget.number] = left.get(budget.number, budget.disruptions_allowed) - 1
                if left[budget.number] < 0:
                    # Like kube-scheduler: the pod does not count for the other budgets.
                    return True
        return False


def budgets_of(listed: Iterable[PodDisruptionBudget]) -> Budgets:
    """Return the budgets that select pods."""
    by_namespace: dict[str, list[_Budget]] = {}
    for number, budget in enumerate(listed):
        selector = _selector(budget)
        if selector is not None:
            status = budget.status
            by_namespace.setdefault(budget.metadata.namespace, []).append(
                _Budget(number, selector, status.disruptionsAllowed, frozenset(status.disruptedPods))
            )
    return Budgets(by_namespace)


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """Return the selector; None for a budget that protects no pod: an empty, invalid or nothing-matching selector."""
    try:
        selector = compile_selector(budget.spec.selector)
    except SelectorError:
        return None
    return None if selector.is_everything or selector.selects_nothing else selector
