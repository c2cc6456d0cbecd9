"""Resource claims: created from the templates that pods refer to; their reservations end with the pods.

The scheduler reserves claims for the pods it binds; for pods bound without it, the reservation is made here.
"""

from collections.abc import Iterable

from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.pods import DONE, PHASE
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change

_CLAIMS = "resourceclaims.resource.k8s.io"
_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
_COMPONENT = "resource_claim"
_FINALIZER = "resource.kubernetes.io/delete-protection"
_CLAIM = "claim:"
_MAX_RESERVATIONS = 256


class ResourceClaims:
    """Creates, reserves and releases claims; keys are those of pods, or of claims with a `claim:` prefix."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._store = api.store
        self._waiting: dict[Key, dict[Key, None]] = {}
        """Pods by the missing template, or by the claim that must be allocated before it can be reserved for them."""

    def sources(self) -> dict[str, KeysOf]:
        """Watch pods with claims, claims, and claim templates."""
        return {"pods": self._pod_keys, _CLAIMS: self._claim_keys, _TEMPLATES: self._template_keys}

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        if b'"resourceClaims":[' not in record.body and b'"extendedResourceClaimStatus":{' not in record.body:
            return
        if change.type != "DELETED" and record.fields[PHASE] not in DONE:
            yield record.namespace, record.name
            return
        pod = record.object()
        status = pod.get("status", {})
        extended = status.get("extendedResourceClaimStatus", {})
        for one in (*pod["spec"].get("resourceClaims", ()), *status.get("resourceClaimStatuses", ()), extended):
            if one.get("resourceClaimName"):
                yield f"{_CLAIM}{record.namespace}", one["resourceClaimName"]

    def _claim_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        key = (f"{_CLAIM}{record.namespace}", record.name)
        if change.type == "DELETED":
            # The pod it was created for may need a new one.
            owner = _owner(record.object())
            return () if owner is None else ((record.namespace, owner["name"]),)
        waiting = self._waiting.pop(key, {}) if b'"allocation":{' in record.body else {}
        if b'"reservedFor":[' in record.body or b'"deletionTimestamp":"' in record.body:
            return (*waiting, key)
        return waiting

    def _template_keys(self, change: Change) -> Iterable[Key]:
        return self._waiting.pop((change.record.namespace, change.record.name), ())

    def reconcile(self, key: Key) -> float | None:
        """Create the missing claims of a pod, reserve them if it is bound; or release a claim from finished pods."""
        if key[0].startswith(_CLAIM):
            self._release(key[0].removeprefix(_CLAIM), key[1])
            return None
        pod = self._api.read("pods", *key)
        if pod is None or pod["status"].get("phase") in DONE or "deletionTimestamp" in pod["metadata"]:
            return None
        statuses = {one["name"]: one for one in pod["status"].get("resourceClaimStatuses", ())}
        named = dict(statuses)
        for wanted in pod["spec"].get("resourceClaims", ()):
            template, name = wanted.get("resourceClaimTemplateName"), wanted["name"]
            if template and self._is_missing(statuses.get(name), key[0]):
                created = self._ensure(pod, name, template)
                if created:
                    named[name] = {"name": name, "resourceClaimName": created}
        if named != statuses:
            self._api.set_status("pods", pod, {**pod["status"], "resourceClaimStatuses": list(named.values())})
        if pod["spec"].get("nodeName"):
            for one in (*pod["spec"].get("resourceClaims", ()), *named.values()):
                if one.get("resourceClaimName"):
                    self._reserve(pod, one["resourceClaimName"])
        return None

    def _is_missing(self, status: Object | None, namespace: str) -> bool:
        """Return whether a claim has to be created; a status without a name means that the pod needs none."""
        if status is None:
            return True
        name: str = status.get("resourceClaimName", "")
        return name != "" and self._store.get(_CLAIMS, namespace, name) is None

    def _reserve(self, pod: Object, name: str) -> None:
        """Reserve a claim for a pod that was bound without the scheduler, once the claim is allocated."""
        metadata = pod["metadata"]
        namespace, uid = metadata["namespace"], metadata["uid"]
        claim = self._api.read(_CLAIMS, namespace, name)
        if claim is None or "allocation" not in claim.get("status", {}):
            waiting = self._waiting.setdefault((f"{_CLAIM}{namespace}", name), {})
            waiting[(namespace, metadata["name"])] = None
            return
        owner, reserved = _owner(claim), claim["status"].get("reservedFor", [])
        if owner is not None and owner["uid"] != uid:
            return
        if len(reserved) < _MAX_RESERVATIONS and all(one["uid"] != uid for one in reserved):
            consumer = {"resource": "pods", "name": metadata["name"], "uid": uid}
            self._api.set_status(_CLAIMS, claim, {**claim["status"], "reservedFor": [*reserved, consumer]})

    def _ensure(self, pod: Object, name: str, template_name: str) -> str | None:
        """Return the name of the claim for an entry of a pod, created if missing; None if there is no template."""
        namespace = pod["metadata"]["namespace"]
        for record in self._api.owned(pod["metadata"]["uid"], _CLAIMS):
            if record.object()["metadata"].get("annotations", {}).get(_POD_CLAIM) == name:
                return record.name
        found = self._api.read(_TEMPLATES, namespace, template_name)
        if found is None:
            waiting = self._waiting.setdefault((namespace, template_name), {})
            waiting[(namespace, pod["metadata"]["name"])] = None
            message = f'PodResourceClaim {name}: resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            self._api.event(_COMPONENT, pod, "FailedResourceClaimCreation", message, "Warning")
            return None
        template = found["spec"]
        metadata = template.get("metadata", {})
        claim: Object = {
            "metadata": {
                "generateName": f"{pod['metadata']['name']}-{name}-",
                "labels": dict(metadata.get("labels", {})),
                "annotations": {**metadata.get("annotations", {}), _POD_CLAIM: name},
                "ownerReferences": [reference(pod)],
            },
            "spec": template.get("spec", {}),
        }
        try:
            return self._api.create(_CLAIMS, namespace, claim).name
        except ApiError as error:
            message = f"PodResourceClaim {name}: {error.message}"
            self._api.event(_COMPONENT, pod, "FailedResourceClaimCreation", message, "Warning")
            raise

    def _release(self, namespace: str, name: str) -> None:
        """Drop the reservations of finished pods; without any left, deallocate the claim and drop its finalizer.

        A claim that was created for a finished pod is deleted.
        """
        claim = self._api.read(_CLAIMS, namespace, name)
        if claim is None:
            return
        status = dict(claim.get("status", {}))
        reserved = status.pop("reservedFor", [])
        kept = [one for one in reserved if one.get("resource") != "pods" or self._is_alive(one["uid"])]
        if kept:
            self._api.set_status(_CLAIMS, claim, {**status, "reservedFor": kept})
            return
        if reserved or "deletionTimestamp" in claim["metadata"]:
            status.pop("allocation", None)
            self._api.set_status(_CLAIMS, claim, status)
            if _FINALIZER in claim["metadata"].get("finalizers", ()):
                self._api.update(_CLAIMS, namespace, name, _unprotect)
        owner = _owner(claim)
        if owner is not None and not self._is_alive(owner["uid"]):
            self._api.delete(_CLAIMS, namespace, name)

    def _is_alive(self, uid: str) -> bool:
        entry = self._store.by_uid.get(uid)
        return entry is not None and entry[1].fields[PHASE] not in DONE


def _owner(claim: Object) -> Object | None:
    """Return the owner reference to the pod that a claim was created for; None if there is none."""
    return next((one for one in claim["metadata"].get("ownerReferences", ()) if one["kind"] == "Pod"), None)


def _unprotect(claim: Object) -> None:
    claim["metadata"]["finalizers"].remove(_FINALIZER)
