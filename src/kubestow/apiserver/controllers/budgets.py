"""Disruption budgets: how many pods of a set may go right now."""

import time
from collections.abc import Iterable

from kubestow.apiserver import clock
from kubestow.apiserver.controllers.deployments import share
from kubestow.apiserver.controllers.pods import Facts, Object, Pods, set_condition, set_status
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change

_BUDGETS = "poddisruptionbudgets.policy"
_REMEMBER_SECONDS = 120


class Budgets:
    """Keeps the status of PodDisruptionBudgets."""

    def __init__(self, pods: Pods, writer: Writer) -> None:
        self._pods = pods
        self._writer = writer

    def sources(self) -> dict[str, KeysOf]:
        """Follows budgets and pods."""
        return {_BUDGETS: own_key, "pods": self._budgets_near}

    def _budgets_near(self, change: Change) -> Iterable[Key]:
        namespace = change.record.namespace
        named = self._pods.store.collection(_BUDGETS).by_namespace.get(namespace)
        return [(namespace, name) for name in named] if named else ()

    def visit(self, key: Key) -> float | None:
        """Counts the pods of a budget."""
        store = self._pods.store
        record = store.get(_BUDGETS, *key)
        if record is None:
            return None
        budget = record.object()
        selector = from_object(budget["spec"].get("selector"))
        chosen = [
            self._pods.facts(pod)
            for pod in store.collection("pods").by_namespace.get(key[0], {}).values()
            if selector is not None and selector.matches(pod.labels)
        ]
        chosen = [pod for pod in chosen if pod.phase not in ("Succeeded", "Failed")]
        disrupted = self._disrupted(budget, chosen)
        healthy = sum(1 for pod in chosen if pod.ready and not pod.deleting and pod.record.name not in disrupted)
        expected, needed = self._needed(budget["spec"], chosen)
        allowed = max(0, healthy - needed) if expected else 0
        conditions: list[Object] = [dict(one) for one in budget.get("status", {}).get("conditions", ())]
        generation = budget["metadata"].get("generation", 1)
        if allowed:
            set_condition(conditions, "DisruptionAllowed", "True", "SufficientPods", "")
        else:
            set_condition(conditions, "DisruptionAllowed", "False", "InsufficientPods", "")
        status: Object = {
            "currentHealthy": healthy,
            "desiredHealthy": needed,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation,
            "conditions": conditions,
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        set_status(self._writer, _BUDGETS, budget, status)
        return float(_REMEMBER_SECONDS) if disrupted else None

    def _disrupted(self, budget: Object, chosen: list[Facts]) -> dict[str, str]:
        """Pods whose eviction was granted and that are not going yet, for a while."""
        staying = {pod.record.name for pod in chosen if not pod.deleting}
        granted: dict[str, str] = budget.get("status", {}).get("disruptedPods", {})
        return {
            name: at
            for name, at in granted.items()
            if name in staying and clock.seconds(at) + _REMEMBER_SECONDS > time.time()
        }

    def _needed(self, spec: Object, chosen: list[Facts]) -> tuple[int, int]:
        """How many pods are expected, and how many of them must be healthy."""
        if "minAvailable" in spec and not isinstance(spec["minAvailable"], str):
            return len(chosen), int(spec["minAvailable"])
        expected = self._expected(chosen)
        if "minAvailable" in spec:
            return expected, share(spec["minAvailable"], expected, up=True)
        if "maxUnavailable" in spec:
            return expected, max(0, expected - share(spec["maxUnavailable"], expected, up=True))
        return expected, max(0, expected - 1)

    def _expected(self, chosen: list[Facts]) -> int:
        """What the owners of the pods want; pods without an owner count as one each."""
        store = self._pods.store
        owners = {uid for pod in chosen for uid in pod.record.owners}
        total = sum(1 for pod in chosen if not pod.record.owners)
        for uid in owners:
            entry = store.by_uid.get(uid)
            if entry is not None:
                total += entry[1].object().get("spec", {}).get("replicas", 1)
        return total
