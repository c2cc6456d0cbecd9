"""ReplicaSets and ReplicationControllers: they keep the number of their pods equal to `replicas`."""

from collections import Counter

from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.api import Object, set_condition
from kubestow.apiserver.controllers.pods import DONE, Facts, Pods
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key

_BURST = 500
_FAILURE = "ReplicaFailure"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    """Creates missing pods, deletes surplus ones, and reports the counts in the status."""

    def __init__(self, pods: Pods, storage: str = "replicasets.apps") -> None:
        self._pods = pods
        self._api = pods.api
        self._storage = storage
        plain = storage == "replicationcontrollers"
        self._component = "replication-controller" if plain else "replicaset-controller"
        self._adoption = Adoption(pods.api, storage, "pods")
        self.sources = {self._storage: self._adoption.owner_keys, "pods": self._adoption.owned_keys}

    def reconcile(self, key: Key) -> float | None:
        """Create or delete pods of one set, and update its status."""
        record = self._api.store.get(self._storage, *key)
        if record is None:
            return None
        self._adoption.apply(record)
        owner = record.object()
        failure, again = None, None
        if "deletionTimestamp" not in owner["metadata"]:
            try:
                again = self._scale(owner, [pod for pod in self._pods.owned_by(record.uid) if pod.active])
            except ApiError as error:
                failure = error
        waiting = self._report(owner, self._pods.owned_by(record.uid), failure)
        if failure is not None:
            raise failure
        return again if again is not None else waiting

    def _scale(self, owner: Object, active: list[Facts]) -> float | None:
        """Create or delete a batch of pods; return 0 if there are more, else None."""
        spec, name = owner["spec"], owner["metadata"]["name"]
        missing = spec.get("replicas", 1) - len(active)
        for _ in range(min(missing, _BURST)):
            self._pods.create(self._component, owner, spec["template"], f"{name}-")
        if missing < 0:
            per_node = Counter(pod.node for pod in active if pod.ready)
            for pod in sorted(active, key=lambda one: _deletion_rank(one, per_node))[: min(-missing, _BURST)]:
                self._pods.delete(self._component, owner, pod)
        return 0.0 if abs(missing) > _BURST else None

    def _report(self, owner: Object, pods: list[Facts], failure: ApiError | None) -> float | None:
        spec, now = owner["spec"], self._api.now()
        active = [pod for pod in pods if pod.active]
        labels = spec.get("template", {}).get("metadata", {}).get("labels", {}).items()
        waits = [pod.available_in(spec.get("minReadySeconds", 0), now) for pod in active if pod.ready]
        counts = {
            "fullyLabeledReplicas": sum(1 for pod in active if labels <= pod.record.labels.items()),
            "readyReplicas": len(waits),
            "availableReplicas": waits.count(0.0),
        }
        if self._component == "replicaset-controller":
            counts["terminatingReplicas"] = sum(1 for pod in pods if pod.deleting and pod.phase not in DONE)
        status: Object = {
            "replicas": len(active),
            "observedGeneration": owner["metadata"].get("generation", 1),
            **{name: count for name, count in counts.items() if count or name == "terminatingReplicas"},
        }
        conditions = list(owner.get("status", {}).get("conditions", ()))
        if failure is None:
            conditions = [one for one in conditions if one["type"] != _FAILURE]
        elif all(one["type"] != _FAILURE for one in conditions):
            # The first failure stays: each one names another pod, and a change of the status would retry at once.
            set_condition(conditions, _FAILURE, "True", "FailedCreate", failure.message, self._api.store.now())
        if conditions:
            status["conditions"] = conditions
        self._api.set_status(self._storage, owner, status)
        return min((wait for wait in waits if wait), default=None)


def _deletion_rank(pod: Facts, per_node: Counter[str]) -> tuple[bool, int, bool, int, int, float, int, float]:
    """Return the sort key for deletion: unbound, pending, unready, cheap, co-located, recently ready, new first."""
    phase = _PHASES.get(pod.phase, 2)
    peers = per_node[pod.node] if pod.ready else 0
    return bool(pod.node), phase, pod.ready, pod.deletion_cost, -peers, -pod.ready_since, -pod.restarts, -pod.created
