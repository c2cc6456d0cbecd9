"""Deployments: one ReplicaSet for each template there was; the newest grows while the older ones shrink."""

import hashlib
import math
import time
from typing import Any

from kubestow.apiserver import clock
from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.pods import Object, reference, set_condition, set_status
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import encode
from kubestow.apiserver.store.store import Store

_SETS = "replicasets.apps"
_SET = BY_STORAGE[_SETS]
_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Object) -> str:
    """A short name for a template."""
    digest = hashlib.sha256(encode(template)).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:10])


def share(value: Any, total: int, *, up: bool) -> int:
    """A number, or a percentage of a total."""
    if isinstance(value, str) and value.endswith("%"):
        exact = int(value[:-1]) * total / 100
        return math.ceil(exact) if up else math.floor(exact)
    return int(value)


class Deployments:
    """Rolls out Deployments."""

    def __init__(self, store: Store, writer: Writer, remover: Remover) -> None:
        self._store = store
        self._writer = writer
        self._remover = remover
        self._adoption = Adoption(writer, "deployments.apps", _SETS)

    def sources(self) -> dict[str, KeysOf]:
        """Follows Deployments and their ReplicaSets."""
        return {"deployments.apps": self._adoption.of_owner, _SETS: self._adoption.of_owned}

    def visit(self, key: Key) -> float | None:
        """Takes the next step of a roll-out."""
        record = self._store.get("deployments.apps", *key)
        if record is None:
            return None
        deployment = record.object()
        if "deletionTimestamp" in deployment["metadata"]:
            return None
        self._adoption.settle(record)
        sets = self._sets_of(record.uid)
        newest = next((one for one in sets if _same_template(one, deployment)), None)
        paused = deployment["spec"].get("paused", False)
        if newest is None and not paused:
            newest = self._create_set(deployment, sets)
            sets.append(newest)
        elif newest is not None:
            self._mark_revision(newest, sets)
        older = [one for one in sets if one is not newest]
        if paused:
            self._scale_active(deployment, sets)
        elif newest is not None:
            if deployment["spec"]["strategy"]["type"] == "Recreate":
                self._recreate(deployment, newest, older)
            else:
                self._roll(deployment, newest, older)
            self._forget_old(deployment, older)
        return self._report(deployment, newest, sets)

    def _sets_of(self, uid: str) -> list[Object]:
        found = []
        for storage, namespace, name in self._store.dependents.get(uid, ()):
            record = self._store.get(storage, namespace, name) if storage == _SETS else None
            if record is not None:
                found.append(record.object())
        return sorted(found, key=lambda one: one["metadata"]["creationTimestamp"])

    def _create_set(self, deployment: Object, sets: list[Object]) -> Object:
        metadata, spec = deployment["metadata"], deployment["spec"]
        digest = template_hash(spec["template"])
        labels = {**spec["template"].get("metadata", {}).get("labels", {}), _HASH: digest}
        template = {**spec["template"], "metadata": {**spec["template"].get("metadata", {}), "labels": labels}}
        selector = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), _HASH: digest}}
        annotations = {
            key: value
            for key, value in metadata.get("annotations", {}).items()
            if key != "kubectl.kubernetes.io/last-applied-configuration" and key != _REVISION
        }
        annotations[_REVISION] = str(_highest_revision(sets) + 1)
        replica_set: Object = {
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [reference(deployment)],
            },
            "spec": {
                "replicas": 0,
                "selector": selector,
                "template": template,
                "minReadySeconds": spec.get("minReadySeconds", 0),
            },
        }
        return self._writer.create(_SET, metadata["namespace"], replica_set, internal()).object()

    def _mark_revision(self, newest: Object, sets: list[Object]) -> None:
        """A template that comes back is the newest revision again."""
        highest = _highest_revision([one for one in sets if one is not newest])
        if _revision(newest) <= highest:

            def change(current: Object) -> Object:
                current["metadata"].setdefault("annotations", {})[_REVISION] = str(highest + 1)
                return current

            newest.update(self._update(newest, change))

    def _update(self, replica_set: Object, change: Any) -> Object:
        metadata = replica_set["metadata"]
        return self._writer.update(_SET, metadata["namespace"], metadata["name"], change, internal()).object()

    def _scale(self, replica_set: Object, replicas: int) -> None:
        if replica_set["spec"].get("replicas") != replicas:

            def change(current: Object) -> Object:
                current["spec"]["replicas"] = replicas
                return current

            replica_set.update(self._update(replica_set, change))

    def _scale_active(self, deployment: Object, sets: list[Object]) -> None:
        active = [one for one in sets if one["spec"].get("replicas")]
        if len(active) == 1:
            self._scale(active[0], deployment["spec"]["replicas"])

    def _recreate(self, deployment: Object, newest: Object, older: list[Object]) -> None:
        for one in older:
            self._scale(one, 0)
        if not any(one.get("status", {}).get("replicas") for one in older):
            self._scale(newest, deployment["spec"]["replicas"])

    def _roll(self, deployment: Object, newest: Object, older: list[Object]) -> None:
        """Never more pods than wanted plus surge, never fewer available than wanted minus unavailable."""
        wanted = deployment["spec"]["replicas"]
        rolling = deployment["spec"]["strategy"].get("rollingUpdate", {})
        surge = share(rolling.get("maxSurge", "25%"), wanted, up=True)
        missing = share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
        if not surge and not missing:
            missing = 1
        have = newest["spec"].get("replicas", 0)
        if have > wanted:
            self._scale(newest, wanted)
        elif have < wanted:
            room = wanted + surge - sum(one["spec"].get("replicas", 0) for one in (newest, *older))
            self._scale(newest, have + max(0, min(room, wanted - have)))
        available = sum(one.get("status", {}).get("availableReplicas", 0) for one in (newest, *older))
        starting = newest["spec"].get("replicas", 0) - newest.get("status", {}).get("availableReplicas", 0)
        total = sum(one["spec"].get("replicas", 0) for one in (newest, *older))
        # Pods of older sets that never became available are no loss; the rest go as far as availability allows.
        may_go = max(0, total - (wanted - missing) - max(0, starting))
        for one in older:
            unavailable = one["spec"].get("replicas", 0) - one.get("status", {}).get("availableReplicas", 0)
            gone = min(max(0, unavailable), may_go)
            if gone:
                self._scale(one, one["spec"]["replicas"] - gone)
                may_go -= gone
        may_go = min(may_go, max(0, available - (wanted - missing)))
        for one in older:
            gone = min(one["spec"].get("replicas", 0), may_go)
            if gone:
                self._scale(one, one["spec"]["replicas"] - gone)
                may_go -= gone

    def _forget_old(self, deployment: Object, older: list[Object]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        idle = [one for one in older if not one["spec"].get("replicas") and not one.get("status", {}).get("replicas")]
        for one in sorted(idle, key=_revision)[: max(0, len(idle) - limit)]:
            metadata = one["metadata"]
            self._remover.delete(_SET, metadata["namespace"], metadata["name"], DeleteOptions(), internal())

    def _report(self, deployment: Object, newest: Object | None, sets: list[Object]) -> float | None:
        spec, wanted = deployment["spec"], deployment["spec"]["replicas"]

        def total(name: str) -> int:
            return sum(one.get("status", {}).get(name, 0) for one in sets)

        status: Object = {
            "observedGeneration": deployment["metadata"].get("generation", 1),
            "replicas": total("replicas"),
            "updatedReplicas": newest.get("status", {}).get("replicas", 0) if newest else 0,
            "readyReplicas": total("readyReplicas"),
            "availableReplicas": total("availableReplicas"),
        }
        status["unavailableReplicas"] = max(0, wanted - status["availableReplicas"])
        conditions: list[Object] = [dict(one) for one in deployment.get("status", {}).get("conditions", ())]
        missing = share(spec["strategy"].get("rollingUpdate", {}).get("maxUnavailable", 0), wanted, up=False)
        enough = status["availableReplicas"] >= wanted - missing
        if enough:
            _note(conditions, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        else:
            message = "Deployment does not have minimum availability."
            _note(conditions, "Available", "False", "MinimumReplicasUnavailable", message)
        again = self._progress(deployment, newest, status, conditions)
        for name in [name for name, value in status.items() if value == 0 and name != "observedGeneration"]:
            del status[name]
        status["conditions"] = conditions
        if newest is not None:
            self._show_revision(deployment, _revision(newest))
        set_status(self._writer, "deployments.apps", deployment, status)
        return again

    def _progress(
        self, deployment: Object, newest: Object | None, status: Object, conditions: list[Object]
    ) -> float | None:
        """Whether the roll-out moves; it has failed if it has not moved for too long."""
        wanted = deployment["spec"]["replicas"]
        name = newest["metadata"]["name"] if newest else ""
        done = status["updatedReplicas"] == status["replicas"] == status["availableReplicas"] == wanted
        old = deployment.get("status", {})
        moved = any(old.get(key, 0) != status[key] for key in ("updatedReplicas", "readyReplicas", "availableReplicas"))
        if done:
            message = f'ReplicaSet "{name}" has successfully progressed.'
            _note(conditions, "Progressing", "True", "NewReplicaSetAvailable", message)
            return None
        current = next((one for one in conditions if one["type"] == "Progressing"), None)
        deadline = deployment["spec"].get("progressDeadlineSeconds", 600)
        since = clock.seconds(current["lastUpdateTime"]) if current and current.get("lastUpdateTime") else time.time()
        if not moved and current is not None and time.time() - since > deadline:
            message = f'ReplicaSet "{name}" has timed out progressing.'
            _note(conditions, "Progressing", "False", "ProgressDeadlineExceeded", message)
            return None
        if current is None or moved or current["reason"] == "NewReplicaSetAvailable":
            message = f'ReplicaSet "{name}" is progressing.'
            _note(conditions, "Progressing", "True", "ReplicaSetUpdated", message, touched=True)
        return float(deadline)

    def _show_revision(self, deployment: Object, revision: int) -> None:
        if deployment["metadata"].get("annotations", {}).get(_REVISION) == str(revision):
            return

        def change(current: Object) -> Object:
            current["metadata"].setdefault("annotations", {})[_REVISION] = str(revision)
            return current

        metadata = deployment["metadata"]
        self._writer.update(BY_STORAGE["deployments.apps"], metadata["namespace"], metadata["name"], change, internal())


def _note(
    conditions: list[Object], type_: str, status: str, reason: str, message: str, *, touched: bool = False
) -> None:
    old = next((one for one in conditions if one["type"] == type_), None)
    same = old is not None and (old["status"], old["reason"], old["message"]) == (status, reason, message)
    if not same or touched:
        set_condition(conditions, type_, status, reason, message)
        next(one for one in conditions if one["type"] == type_)["lastUpdateTime"] = clock.now()


def _revision(replica_set: Object) -> int:
    text = replica_set["metadata"].get("annotations", {}).get(_REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _highest_revision(sets: list[Object]) -> int:
    return max((_revision(one) for one in sets), default=0)


def _same_template(replica_set: Object, deployment: Object) -> bool:
    template = replica_set["spec"]["template"]
    labels = {key: value for key, value in template.get("metadata", {}).get("labels", {}).items() if key != _HASH}
    mine = {**template, "metadata": {**template.get("metadata", {}), "labels": labels}}
    return bool(_without_zeros(mine) == _without_zeros(deployment["spec"]["template"]))


def _without_zeros(value: Any) -> Any:
    """Leaves out what means nothing: clients differ in whether they send `hostNetwork: false`."""
    if isinstance(value, dict):
        kept = {key: _without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item}
    return [_without_zeros(item) for item in value] if isinstance(value, list) else value
