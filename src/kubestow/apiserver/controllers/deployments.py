"""Deployments: a ReplicaSet for each revision of the template; the newest is scaled up, older ones are scaled down."""

import hashlib
from collections.abc import Iterable
from typing import Any

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers import rollout
from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.api import Api, Object, condition_of, reference, set_condition
from kubestow.apiserver.controllers.pods import DONE, PHASE
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, encode

_DEPLOYMENTS = "deployments.apps"
_SETS = "replicasets.apps"
_COMPONENT = "deployment-controller"
_HASH = "pod-template-hash"
_PREFIX = "deployment.kubernetes.io/"
_REVISION = f"{_PREFIX}revision"
_HISTORY = f"{_PREFIX}revision-history"
_DESIRED = f"{_PREFIX}desired-replicas"
_LIMIT = f"{_PREFIX}max-replicas"
_NOT_COPIED = (_REVISION, _HISTORY, _DESIRED, _LIMIT, "kubectl.kubernetes.io/last-applied-configuration")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_ENDLESS = 2**31 - 1


def template_hash(template: Object, collisions: int = 0) -> str:
    """Return a short hash of a template, used in names and labels."""
    digest = hashlib.sha256(encode([template, collisions] if collisions else template)).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:10])


class Deployments:
    """Performs the rollouts of Deployments."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._adoption = Adoption(api, _DEPLOYMENTS, _SETS)
        self.sources = {
            _DEPLOYMENTS: self._adoption.owner_keys,
            _SETS: self._adoption.owned_keys,
            "pods": self._pod_keys,
        }

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        if change.type != "DELETED" and change.record.fields[PHASE] not in DONE:
            return
        by_uid = self._api.store.by_uid
        for uid in change.record.owners:
            for owner in by_uid[uid][1].owners if uid in by_uid else ():
                storage, record = by_uid.get(owner, ("", change.record))
                if storage == _DEPLOYMENTS and b'"type":"Recreate"' in record.body:
                    yield record.namespace, record.name

    def reconcile(self, key: Key) -> float | None:
        """Perform the next step of a rollout, and update the status."""
        record = self._api.store.get(_DEPLOYMENTS, *key)
        if record is None:
            return None
        deployment = record.object()
        self._adoption.apply(record)
        sets = sorted(
            (one.object() for one in self._api.owned(record.uid, _SETS)),
            key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]),
        )
        newest = next((one for one in sets if _same_template(one, deployment)), None)
        if "deletionTimestamp" in deployment["metadata"]:
            return self._report(deployment, newest, sets, created=False)
        paused, created = deployment["spec"].get("paused", False), False
        if newest is not None:
            self._annotate(deployment, newest, sets)
        elif not paused:
            newest = self._create_set(deployment, sets)
            if newest is None:
                return 0.0
            created = True
            sets.append(newest)
        older = [one for one in sets if one is not newest]
        if paused or self._was_scaled(deployment, sets):
            self._rescale(deployment, newest, older)
        elif newest is not None:
            if deployment["spec"]["strategy"]["type"] == "Recreate":
                self._recreate(deployment, newest, older)
            else:
                self._roll(deployment, newest, older)
        again = self._report(deployment, newest, sets, created=created)
        if paused or (newest is not None and _is_complete(deployment, newest, sets)):
            self._prune(deployment, older)
        return again

    # ReplicaSets

    def _create_set(self, deployment: Object, sets: list[Object]) -> Object | None:
        """Create the set of the current template; None if its name is in use: the next run tries another name."""
        metadata, spec = deployment["metadata"], deployment["spec"]
        digest = template_hash(spec["template"], deployment.get("status", {}).get("collisionCount", 0))
        labels = {**spec["template"].get("metadata", {}).get("labels", {}), _HASH: digest}
        template = {**spec["template"], "metadata": {**spec["template"].get("metadata", {}), "labels": labels}}
        selector = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), _HASH: digest}}
        replica_set: Object = {
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": labels,
                "annotations": {
                    **_copied_annotations(deployment),
                    **_scale_annotations(deployment),
                    _REVISION: str(_highest(sets) + 1),
                },
                "ownerReferences": [reference(deployment)],
            },
            "spec": {
                "replicas": 0,
                "selector": selector,
                "template": template,
                "minReadySeconds": spec.get("minReadySeconds", 0),
            },
        }
        try:
            return self._api.create(_SETS, metadata["namespace"], replica_set).object()
        except ApiError as error:
            if error.reason != "AlreadyExists":
                message = f'Failed to create new replica set "{replica_set["metadata"]["name"]}": {error.message}'
                self._api.event(_COMPONENT, deployment, "ReplicaSetCreateError", message, "Warning")
                raise
            status = deployment.get("status", {})
            collided = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
            self._api.set_status(_DEPLOYMENTS, deployment, collided)
            return None

    def _annotate(self, deployment: Object, newest: Object, sets: list[Object]) -> None:
        """Give the set of the current template the highest revision, and the Deployment's annotations."""
        highest = _highest([one for one in sets if one is not newest])
        old: dict[str, str] = newest["metadata"].get("annotations", {})
        new = {**old, **_copied_annotations(deployment)}
        if _revision(newest) <= highest:
            new[_REVISION] = str(highest + 1)
            if old.get(_REVISION):
                new[_HISTORY] = ",".join(filter(None, (old.get(_HISTORY), old[_REVISION])))
        seconds = deployment["spec"].get("minReadySeconds", 0)
        if new != old or newest["spec"].get("minReadySeconds", 0) != seconds:
            newest["spec"]["minReadySeconds"] = seconds
            newest["metadata"]["annotations"] = new
            self._write(newest)

    def _write(self, replica_set: Object) -> None:
        metadata, spec = replica_set["metadata"], replica_set["spec"]

        def alter(current: Object) -> None:
            current["metadata"]["annotations"] = metadata["annotations"]
            current["spec"].update(replicas=spec["replicas"], minReadySeconds=spec.get("minReadySeconds", 0))

        replica_set.update(self._api.update(_SETS, metadata["namespace"], metadata["name"], alter).object())

    def _scale(self, deployment: Object, one: Object, replicas: int) -> None:
        before = one["spec"].get("replicas", 0)
        annotations = {**one["metadata"].get("annotations", {}), **_scale_annotations(deployment)}
        if before == replicas and annotations == one["metadata"].get("annotations"):
            return
        one["spec"]["replicas"] = replicas
        one["metadata"]["annotations"] = annotations
        self._write(one)
        if before != replicas:
            way = "up" if replicas > before else "down"
            message = f"Scaled {way} replica set {one['metadata']['name']} from {before} to {replicas}"
            self._api.event(_COMPONENT, deployment, "ScalingReplicaSet", message)

    def _resize(self, deployment: Object, sizes: dict[str, int], sets: Iterable[Object]) -> None:
        for one in sets:
            if one["metadata"]["name"] in sizes:
                self._scale(deployment, one, sizes[one["metadata"]["name"]])

    # Steps

    def _was_scaled(self, deployment: Object, sets: list[Object]) -> bool:
        wanted = str(deployment["spec"]["replicas"])
        active = [one for one in sets if one["spec"].get("replicas")]
        return any(one["metadata"].get("annotations", {}).get(_DESIRED, wanted) != wanted for one in active)

    def _rescale(self, deployment: Object, newest: Object | None, older: list[Object]) -> None:
        wanted = deployment["spec"]["replicas"]
        surge = rollout.bounds(deployment["spec"]["strategy"].get("rollingUpdate"), wanted)[0]
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            surge = 0
        sets = [*older, newest] if newest is not None else older
        sizes = rollout.rescale(wanted, surge, _share(newest) if newest else None, [_share(one) for one in older])
        for one in sets:
            if one["spec"].get("replicas") or one["metadata"]["name"] in sizes:
                size = sizes.get(one["metadata"]["name"], one["spec"].get("replicas", 0))
                self._scale(deployment, one, size)

    def _recreate(self, deployment: Object, newest: Object, older: list[Object]) -> None:
        self._resize(deployment, {one["metadata"]["name"]: 0 for one in older}, older)
        pods = (pod for one in older for pod in self._api.owned(one["metadata"]["uid"], "pods"))
        if all(pod.fields[PHASE] in DONE for pod in pods):
            self._scale(deployment, newest, deployment["spec"]["replicas"])

    def _roll(self, deployment: Object, newest: Object, older: list[Object]) -> None:
        wanted = deployment["spec"]["replicas"]
        surge, unavailable = rollout.bounds(deployment["spec"]["strategy"].get("rollingUpdate"), wanted)
        sizes = rollout.roll(wanted, surge, unavailable, _share(newest), [_share(one) for one in older])
        self._resize(deployment, sizes, (newest, *older))

    def _prune(self, deployment: Object, older: list[Object]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        idle = [one for one in older if not one["spec"].get("replicas") and not one.get("status", {}).get("replicas")]
        for one in sorted(idle, key=_revision)[: max(0, len(idle) - limit)]:
            self._api.delete(_SETS, one["metadata"]["namespace"], one["metadata"]["name"])

    # Status

    def _report(self, deployment: Object, newest: Object | None, sets: list[Object], *, created: bool) -> float | None:
        old = deployment.get("status", {})
        wanted = deployment["spec"]["replicas"]
        status = _counts(deployment, newest, sets)
        conditions: list[Object] = [dict(one) for one in old.get("conditions", ())]
        strategy = deployment["spec"]["strategy"]
        missing = rollout.bounds(strategy.get("rollingUpdate"), wanted)[1] if strategy["type"] != "Recreate" else 0
        if status["availableReplicas"] >= wanted - missing:
            self._set_condition(
                conditions, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
            )
        else:
            message = "Deployment does not have minimum availability."
            self._set_condition(conditions, "Available", "False", "MinimumReplicasUnavailable", message)
        again = self._progress(deployment, newest, status, conditions, created=created)
        failure = next(filter(None, (condition_of(one, "ReplicaFailure") for one in sets)), None)
        conditions = [one for one in conditions if one["type"] != "ReplicaFailure"]
        if failure is not None:
            self._set_condition(conditions, "ReplicaFailure", "True", failure["reason"], failure["message"])
        keep = ("observedGeneration", "terminatingReplicas")
        status = {name: value for name, value in status.items() if value or name in keep}
        status["conditions"] = conditions
        if old.get("collisionCount"):
            status["collisionCount"] = old["collisionCount"]
        self._show_revision(deployment, newest)
        self._api.set_status(_DEPLOYMENTS, deployment, status)
        return again

    def _progress(
        self, deployment: Object, newest: Object | None, status: Object, conditions: list[Object], *, created: bool
    ) -> float | None:
        """Set the condition Progressing; return the seconds until the progress deadline, if it has to be checked."""
        deadline = deployment["spec"].get("progressDeadlineSeconds", 600)
        if deadline >= _ENDLESS:
            return None
        current = next((one for one in conditions if one["type"] == "Progressing"), None)
        reason = current["reason"] if current else ""
        if deployment["spec"].get("paused"):
            if reason != "ProgressDeadlineExceeded":
                self._set_condition(conditions, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
            return None
        if reason == "DeploymentPaused":
            self._set_condition(conditions, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")
            return float(deadline)
        name = newest["metadata"]["name"] if newest else ""
        old, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
        if status["updatedReplicas"] == status["replicas"] == status["availableReplicas"] == wanted:
            message = f'ReplicaSet "{name}" has successfully progressed.'
            self._set_condition(conditions, "Progressing", "True", "NewReplicaSetAvailable", message)
            return None
        outdated = old.get("replicas", 0) - old.get("updatedReplicas", 0)
        progressed = status["replicas"] - status["updatedReplicas"] < outdated or any(
            status[key] > old.get(key, 0) for key in ("updatedReplicas", "readyReplicas", "availableReplicas")
        )
        since = parse_time(current["lastUpdateTime"]) if current and current.get("lastUpdateTime") else self._api.now()
        left = since + deadline - self._api.now()
        if created:
            message = f'Created new replica set "{name}"'
            self._set_condition(conditions, "Progressing", "True", "NewReplicaSetCreated", message)
        elif current is None or progressed or (reason == "NewReplicaSetAvailable" and name not in current["message"]):
            message = f'ReplicaSet "{name}" is progressing.'
            self._set_condition(conditions, "Progressing", "True", "ReplicaSetUpdated", message, updated=True)
            left = float(deadline)
        elif reason != "NewReplicaSetAvailable" and left <= 0:
            message = f'ReplicaSet "{name}" has timed out progressing.'
            self._set_condition(conditions, "Progressing", "False", "ProgressDeadlineExceeded", message)
        return left + 1 if left > 0 else None

    def _set_condition(
        self, conditions: list[Object], type_: str, status: str, reason: str, message: str, *, updated: bool = False
    ) -> None:
        old = next((one for one in conditions if one["type"] == type_), None)
        same = old is not None and (old["status"], old["reason"], old["message"]) == (status, reason, message)
        now = self._api.store.now()
        if not same:
            set_condition(conditions, type_, status, reason, message, now, lastUpdateTime=now)
        elif updated and old is not None:
            old["lastUpdateTime"] = now

    def _show_revision(self, deployment: Object, newest: Object | None) -> None:
        metadata = deployment["metadata"]
        revision = newest["metadata"].get("annotations", {}).get(_REVISION) if newest else None
        if revision and metadata.get("annotations", {}).get(_REVISION) != revision:
            self._api.update(
                _DEPLOYMENTS, metadata["namespace"], metadata["name"],
                lambda one: one["metadata"].setdefault("annotations", {}).update({_REVISION: revision}),
            )  # fmt: skip


def _counts(deployment: Object, newest: Object | None, sets: list[Object]) -> Object:
    def total(name: str) -> int:
        return sum(one.get("status", {}).get(name, 0) for one in sets)

    available = total("availableReplicas")
    return {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "replicas": total("replicas"),
        "updatedReplicas": newest.get("status", {}).get("replicas", 0) if newest else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(one["spec"].get("replicas", 0) for one in sets) - available),
        "terminatingReplicas": total("terminatingReplicas"),
    }


def _is_complete(deployment: Object, newest: Object, sets: list[Object]) -> bool:
    counts = _counts(deployment, newest, sets)
    wanted = deployment["spec"]["replicas"]
    return bool(counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted)


def _share(one: Object) -> rollout.Share:
    limit = one["metadata"].get("annotations", {}).get(_LIMIT, "")
    return rollout.Share(
        one["metadata"]["name"],
        one["spec"].get("replicas", 0),
        one.get("status", {}).get("availableReplicas", 0),
        int(limit) if limit.isdecimal() else 0,
    )


def _copied_annotations(deployment: Object) -> dict[str, str]:
    annotations: dict[str, str] = deployment["metadata"].get("annotations", {})
    return {key: value for key, value in annotations.items() if key not in _NOT_COPIED}


def _scale_annotations(deployment: Object) -> dict[str, str]:
    wanted, strategy = deployment["spec"]["replicas"], deployment["spec"]["strategy"]
    surge = rollout.bounds(strategy.get("rollingUpdate"), wanted)[0] if strategy["type"] != "Recreate" else 0
    return {_DESIRED: str(wanted), _LIMIT: str(wanted + surge)}


def _revision(replica_set: Object) -> int:
    text = replica_set["metadata"].get("annotations", {}).get(_REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _highest(sets: list[Object]) -> int:
    return max((_revision(one) for one in sets), default=0)


def _same_template(replica_set: Object, deployment: Object) -> bool:
    template = replica_set["spec"]["template"]
    labels = {key: value for key, value in template.get("metadata", {}).get("labels", {}).items() if key != _HASH}
    bare = {**template, "metadata": {**template.get("metadata", {}), "labels": labels}}
    return bool(_without_zeros(bare) == _without_zeros(deployment["spec"]["template"]))


def _without_zeros(value: Any) -> Any:
    """Drop empty and false values: some clients send defaults such as `hostNetwork: false`, others omit them."""
    if isinstance(value, dict):
        kept = {key: _without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item}
    return [_without_zeros(item) for item in value] if isinstance(value, list) else value
