"""Disruption budgets: the number of pods of a set that may be evicted now."""

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers.api import Object, set_condition
from kubestow.apiserver.controllers.pods import DONE, Facts, Pods
from kubestow.apiserver.controllers.rollout import share
from kubestow.apiserver.controllers.selection import Selection
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.collection import Key

_BUDGETS = "poddisruptionbudgets.policy"
_REMEMBER_SECONDS = 120
_SCALED = ("replicasets.apps", "replicationcontrollers", "statefulsets.apps")


class Budgets:
    """Updates the status of PodDisruptionBudgets."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._api = pods.api
        self._selection = Selection(pods.api.store, _BUDGETS, lambda one: from_object(one["spec"].get("selector")))
        self.sources = {_BUDGETS: self._selection.selector_keys, "pods": self._selection.pod_keys}

    def reconcile(self, key: Key) -> float | None:
        """Count the pods of a budget, and update its status."""
        budget = self._api.read(_BUDGETS, *key)
        if budget is None:
            return None
        selected = [self._pods.facts(pod) for pod in self._selection.pods(key)]
        selected = [pod for pod in selected if pod.phase not in DONE]
        disrupted = self._disrupted(budget, selected)
        healthy = sum(1 for pod in selected if pod.ready and not pod.deleting and pod.name not in disrupted)
        counted = self._needed(budget["spec"], selected)
        conditions: list[Object] = [dict(one) for one in budget.get("status", {}).get("conditions", ())]
        now = self._api.store.now()
        generation = budget["metadata"].get("generation", 1)
        if counted is None:
            message = "found no controllers for pods that have a scale"
            set_condition(conditions, "DisruptionAllowed", "False", "SyncFailed", message, now)
            failed = {**budget.get("status", {}), "disruptionsAllowed": 0, "conditions": conditions}
            fields = ("currentHealthy", "desiredHealthy", "expectedPods")
            self._api.set_status(_BUDGETS, budget, {**dict.fromkeys(fields, 0), **failed})
            return None
        expected, needed = counted
        allowed = max(0, healthy - needed) if expected else 0
        reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
        set_condition(conditions, "DisruptionAllowed", *reason, "", now, observedGeneration=generation)
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
        self._api.set_status(_BUDGETS, budget, status)
        return float(_REMEMBER_SECONDS) if disrupted else None

    def _disrupted(self, budget: Object, selected: list[Facts]) -> dict[str, str]:
        """Return the pods whose eviction was granted recently and whose deletion has not begun."""
        staying = {pod.name for pod in selected if not pod.deleting}
        granted: dict[str, str] = budget.get("status", {}).get("disruptedPods", {})
        since = self._api.now() - _REMEMBER_SECONDS
        return {name: at for name, at in granted.items() if name in staying and parse_time(at) > since}

    def _needed(self, spec: Object, selected: list[Facts]) -> tuple[int, int] | None:
        """Return the expected number of pods, and the number that must be healthy; None if it cannot be determined."""
        if "minAvailable" in spec and not isinstance(spec["minAvailable"], str):
            return len(selected), int(spec["minAvailable"])
        expected = self._expected(selected)
        if expected is None:
            return None
        if "minAvailable" in spec:
            return expected, share(spec["minAvailable"], expected, up=True)
        return expected, max(0, expected - share(spec.get("maxUnavailable", 1), expected, up=True))

    def _expected(self, selected: list[Facts]) -> int | None:
        """Return the sum of the replicas of the pods' owners; each pod without an owner counts as one."""
        store = self._api.store
        total = sum(1 for pod in selected if not pod.record.owners)
        owners: dict[str, None] = {}
        for uid in dict.fromkeys(uid for pod in selected for uid in pod.record.owners):
            storage, record = store.by_uid.get(uid, ("", None))
            above = [one for one in record.owners if one in store.by_uid] if record is not None else []
            owners[above[0] if storage == "replicasets.apps" and above else uid] = None
        for uid in owners:
            storage, record = store.by_uid.get(uid, ("", None))
            if record is None or storage not in (*_SCALED, "deployments.apps"):
                return None
            total += record.object().get("spec", {}).get("replicas", 1)
        return total
