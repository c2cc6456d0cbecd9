"""StatefulSets: pods with an ordinal and their own volume claims, created, updated and deleted in order.

Each reconciliation goes through the ordinals: it creates missing pods, waits where a pod must be available first,
deletes pods beyond the last ordinal, then replaces pods of an older revision, the highest ordinal first.
"""

import re
from functools import partial

from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.api import Object, reference
from kubestow.apiserver.controllers.history import HASH, History, Revision
from kubestow.apiserver.controllers.pods import DONE, Facts, Pods
from kubestow.apiserver.controllers.rollout import share
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.removal import set_owners
from kubestow.apiserver.store.collection import Key

_SETS = "statefulsets.apps"
_CLAIMS = "persistentvolumeclaims"
_COMPONENT = "statefulset-controller"
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_POD_INDEX = "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r"(.*)-(\d+)\Z")


class StatefulSets:
    """Creates, replaces and deletes the pods and claims of StatefulSets."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._api = pods.api
        self._history = History(pods.api)
        self._adoption = Adoption(pods.api, _SETS, "pods")
        self.sources = {_SETS: self._adoption.owner_keys, "pods": self._adoption.owned_keys}

    def reconcile(self, key: Key) -> float | None:
        """Perform the next step of one set, and update its status."""
        record = self._api.store.get(_SETS, *key)
        if record is None:
            return None
        self._adoption.apply(record)
        owner = record.object()
        revisions = self._history.revisions(owner)
        update = revisions[-1]
        named = owner.get("status", {}).get("currentRevision", "")
        current = next((one for one in revisions if one.name == named), update)
        error = None
        if "deletionTimestamp" not in owner["metadata"]:
            try:
                self._step(owner, current, update)
            except ApiError as rejection:
                error = rejection
        pods = self._owned(owner)
        again = self._report(owner, current, update, pods)
        used = {current.name, update.name, *(pod.record.labels.get(HASH, "") for pod in pods.values())}
        self._history.prune(owner, revisions, used)
        if error is not None:
            raise error
        return again

    def _owned(self, owner: Object) -> dict[int, Facts]:
        """Return the pods of a set by ordinal, in ascending order."""
        found = {}
        for pod in self._pods.owned_by(owner["metadata"]["uid"]):
            match = _ORDINAL.match(pod.name)
            if match and match[1] == owner["metadata"]["name"]:
                found[int(match[2])] = pod
        return dict(sorted(found.items()))

    def _step(self, owner: Object, current: Revision, update: Revision) -> None:
        spec = owner["spec"]
        ordered = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        start = spec.get("ordinals", {}).get("start", 0)
        wanted = range(start, start + spec.get("replicas", 1))
        pods = self._owned(owner)
        for ordinal in wanted:
            if self._ensure_pod(owner, current, update, ordinal, pods.get(ordinal)) and ordered:
                return
        condemned = [pods[ordinal] for ordinal in reversed(pods) if ordinal not in wanted]
        unavailable = [ordinal for ordinal, pod in pods.items() if not self._is_available(owner, pod)]
        for pod in condemned:
            self._set_claim_owners(owner, pod, condemned=True)
            if pod.deleting:
                if ordered:
                    return
                continue
            first = bool(unavailable) and pods[unavailable[0]] is pod
            if ordered and not first and not self._is_available(owner, pod):
                return
            self._delete(owner, pod)
            if ordered:
                return
        if spec["updateStrategy"]["type"] == "RollingUpdate" and set(wanted) <= set(pods):
            self._roll(owner, update, [pods[ordinal] for ordinal in wanted], ordered=ordered)

    def _ensure_pod(self, owner: Object, current: Revision, update: Revision, ordinal: int, pod: Facts | None) -> bool:
        """Create or repair the pod of an ordinal; return whether the following ordinals have to wait."""
        if pod is None:
            self._create(owner, current, update, ordinal)
            return True
        if pod.phase in DONE:
            if not pod.deleting:
                self._delete(owner, pod)
            return True
        if pod.phase == "Pending":
            self._create_claims(owner, ordinal)
        if pod.deleting or not self._is_available(owner, pod):
            return True
        self._set_claim_owners(owner, pod, condemned=False)
        return False

    def _roll(self, owner: Object, update: Revision, pods: list[Facts], *, ordered: bool) -> None:
        """Delete pods of older revisions, up to the number that may be unavailable, down to the partition."""
        rolling = owner["spec"]["updateStrategy"].get("rollingUpdate", {})
        max_unavailable = max(1, share(rolling.get("maxUnavailable", 1), len(pods), up=True))
        missing = {pod.name for pod in pods if not self._is_available(owner, pod)}
        old = [pod for pod in pods[rolling.get("partition", 0) :] if pod.record.labels.get(HASH) != update.name]
        old = [pod for pod in reversed(old) if not pod.deleting]
        if not ordered:
            # Pods that are already unavailable do not count against the limit.
            for pod in old:
                if pod.name in missing:
                    self._delete(owner, pod)
            old = [pod for pod in old if pod.name not in missing]
        for pod in old[: max(0, max_unavailable - len(missing))]:
            self._delete(owner, pod)

    def _is_available(self, owner: Object, pod: Facts) -> bool:
        return not pod.deleting and pod.available_in(owner["spec"].get("minReadySeconds", 0), self._api.now()) == 0

    # Pods and claims

    def _create(self, owner: Object, current: Revision, update: Revision, ordinal: int) -> None:
        spec, name = owner["spec"], f"{owner['metadata']['name']}-{ordinal}"
        strategy = spec["updateStrategy"]
        first = spec.get("ordinals", {}).get("start", 0) + strategy.get("rollingUpdate", {}).get("partition", 0)
        below_partition = strategy["type"] == "RollingUpdate" and ordinal < first
        revision = current if below_partition else update
        self._create_claims(owner, ordinal)

        def alter(pod: Object) -> None:
            metadata, pod_spec = pod["metadata"], pod["spec"]
            del metadata["generateName"]
            metadata["name"] = name
            metadata["labels"] |= {_POD_NAME: name, _POD_INDEX: str(ordinal), HASH: revision.name}
            pod_spec["hostname"] = name
            if spec.get("serviceName"):
                pod_spec["subdomain"] = spec["serviceName"]
            claims = [one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", ())]
            volumes = [one for one in pod_spec.get("volumes", ()) if one["name"] not in claims]
            volumes += [{"name": one, "persistentVolumeClaim": {"claimName": f"{one}-{name}"}} for one in claims]
            if volumes:
                pod_spec["volumes"] = volumes

        try:
            created = self._api.create(
                "pods", owner["metadata"]["namespace"], self._pods.build(owner, revision.template, "", alter)
            )
        except ApiError as error:
            if error.reason != "AlreadyExists":
                message = f"create Pod {name} in StatefulSet {owner['metadata']['name']} failed error: {error.message}"
                self._api.event(_COMPONENT, owner, "FailedCreate", message, "Warning")
            raise
        message = f"create Pod {created.name} in StatefulSet {owner['metadata']['name']} successful"
        self._api.event(_COMPONENT, owner, "SuccessfulCreate", message)

    def _delete(self, owner: Object, pod: Facts) -> None:
        self._api.delete("pods", pod.record.namespace, pod.name, uid=pod.record.uid)
        message = f"delete Pod {pod.name} in StatefulSet {owner['metadata']['name']} successful"
        self._api.event(_COMPONENT, owner, "SuccessfulDelete", message)

    def _claims(self, owner: Object, ordinal: int) -> dict[str, Object]:
        """Return the names of the claims of an ordinal, with their templates."""
        templates = owner["spec"].get("volumeClaimTemplates", ())
        return {f"{one['metadata']['name']}-{owner['metadata']['name']}-{ordinal}": one for one in templates}

    def _create_claims(self, owner: Object, ordinal: int) -> None:
        namespace = owner["metadata"]["namespace"]
        for name, template in self._claims(owner, ordinal).items():
            if self._api.store.get(_CLAIMS, namespace, name) is not None:
                continue
            metadata = template["metadata"]
            labels = {**metadata.get("labels", {}), **owner["spec"]["selector"].get("matchLabels", {})}
            claim: Object = {"metadata": {"name": name, "labels": labels}, "spec": dict(template["spec"])}
            if metadata.get("annotations"):
                claim["metadata"]["annotations"] = dict(metadata["annotations"])
            if _retention(owner, "whenDeleted") == "Delete":
                claim["metadata"]["ownerReferences"] = [reference(owner)]
            self._api.create(_CLAIMS, namespace, claim)
            pod = f"{owner['metadata']['name']}-{ordinal}"
            message = f"create Claim {name} Pod {pod} in StatefulSet {owner['metadata']['name']} success"
            self._api.event(_COMPONENT, owner, "SuccessfulCreate", message)

    def _set_claim_owners(self, owner: Object, pod: Facts, *, condemned: bool) -> None:
        """Make the set or a condemned pod the owner of the claims, according to the retention policy."""
        if not owner["spec"].get("volumeClaimTemplates"):
            return
        ordinal = int(pod.name.rpartition("-")[2])
        wanted: list[Object] = []
        if _retention(owner, "whenScaled") == "Delete" and condemned:
            wanted = [reference(pod.record.object())]
        elif _retention(owner, "whenDeleted") == "Delete":
            wanted = [reference(owner)]
        managed = {owner["metadata"]["uid"], pod.record.uid}
        for name in self._claims(owner, ordinal):
            claim = self._api.read(_CLAIMS, pod.record.namespace, name)
            if claim is None:
                continue
            have = claim["metadata"].get("ownerReferences", [])
            new = [one for one in have if one["uid"] not in managed] + wanted
            if [one["uid"] for one in new] != [one["uid"] for one in have]:
                self._api.update(_CLAIMS, pod.record.namespace, name, partial(set_owners, owners=new))

    # Status

    def _report(self, owner: Object, current: Revision, update: Revision, pods: dict[int, Facts]) -> float | None:
        spec, old = owner["spec"], owner.get("status", {})
        now = self._api.now()
        waits = [pod.available_in(spec.get("minReadySeconds", 0), now) for pod in pods.values() if pod.ready]
        alive = [pod for pod in pods.values() if not pod.deleting]

        def at(revision: Revision) -> int:
            return sum(1 for pod in alive if pod.record.labels.get(HASH) == revision.name)

        counts = {
            "readyReplicas": len(waits),
            "currentReplicas": at(current),
            "updatedReplicas": at(update),
        }
        complete = len(pods) == counts["updatedReplicas"] == counts["readyReplicas"] == spec.get("replicas", 1)
        partition = spec["updateStrategy"].get("rollingUpdate", {}).get("partition", 0)
        if spec["updateStrategy"]["type"] == "RollingUpdate" and complete and not partition:
            current, counts["currentReplicas"] = update, counts["updatedReplicas"]
        status: Object = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(pods),
            "availableReplicas": waits.count(0.0),
            "currentRevision": current.name,
            "updateRevision": update.name,
            "collisionCount": 0,
            **{name: count for name, count in counts.items() if count},
        }
        if old.get("conditions"):
            status["conditions"] = old["conditions"]
        self._api.set_status(_SETS, owner, status)
        return min((wait for wait in waits if wait), default=None)


def _retention(owner: Object, when: str) -> str:
    return str(owner["spec"].get("persistentVolumeClaimRetentionPolicy", {}).get(when, "Retain"))
