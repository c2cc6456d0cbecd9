"""ReplicaSets and ReplicationControllers: as many pods as wanted."""

from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.pods import Facts, Object, Pods, set_status
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.store.collection import Key

_BURST = 50


class ReplicaSets:
    """Creates pods that are missing, deletes those too many, reports how many there are."""

    def __init__(self, pods: Pods, writer: Writer, storage: str = "replicasets.apps") -> None:
        self._pods = pods
        self._writer = writer
        self._storage = storage
        self._adoption = Adoption(writer, storage, "pods")

    def sources(self) -> dict[str, KeysOf]:
        """Follows the sets and their pods."""
        return {self._storage: self._adoption.of_owner, "pods": self._adoption.of_owned}

    def visit(self, key: Key) -> float | None:
        """Brings the number of pods in line."""
        record = self._pods.store.get(self._storage, *key)
        if record is None:
            return None
        self._adoption.settle(record)
        owner = record.object()
        pods = self._pods.owned_by(record.uid)
        active = [pod for pod in pods if pod.active]
        spec = owner["spec"]
        more = 0.0
        if "deletionTimestamp" not in owner["metadata"]:
            missing = spec.get("replicas", 1) - len(active)
            for _ in range(min(missing, _BURST)):
                self._pods.create(owner, spec["template"], f"{key[1]}-")
            if missing < 0:
                for pod in sorted(active, key=_worth)[:-missing]:
                    self._pods.delete(pod)
            if missing > _BURST:
                more = 0.001
        waiting = self._report(owner, active)
        return more or waiting

    def _report(self, owner: Object, active: list[Facts]) -> float | None:
        spec = owner["spec"]
        min_ready = spec.get("minReadySeconds", 0)
        labels = spec.get("template", {}).get("metadata", {}).get("labels", {}).items()
        ready = [pod for pod in active if pod.ready]
        available = [pod for pod in ready if pod.available(min_ready)]
        status: Object = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(1 for pod in active if labels <= pod.record.labels.items()),
            "readyReplicas": len(ready),
            "availableReplicas": len(available),
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        for name in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
            if not status[name]:
                del status[name]
        if owner.get("status", {}).get("conditions"):
            status["conditions"] = owner["status"]["conditions"]
        set_status(self._writer, self._storage, owner, status)
        return 1.0 if len(available) < len(ready) else None


def _worth(pod: Facts) -> tuple[bool, int, bool, float, str]:
    """Pods that are least of a loss come first: unbound, pending, not ready, ready lately, new."""
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    newest_first = "".join(chr(255 - ord(char)) for char in pod.created)
    return pod.bound, phases.get(pod.phase, 2), pod.ready, -pod.ready_since, newest_first
