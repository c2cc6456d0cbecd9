"""Device claims: made from templates for the pods that name them, reservations dropped when pods are done."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.pods import Object, reference, set_status
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store

_CLAIMS = "resourceclaims.resource.k8s.io"
_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"


class DeviceClaims:
    """Looks after the device claims of pods; keys are those of pods, or of claims after a `claim:`."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    def sources(self) -> dict[str, KeysOf]:
        """Follows pods with claims, and templates that were missing."""
        return {"pods": self._of_pod, _TEMPLATES: self._of_template}

    def _of_pod(self, change: Change) -> Iterable[Key]:
        if b'"resourceClaims":[' in change.record.body:
            return ((change.record.namespace, change.record.name),)
        return ()

    def _of_template(self, change: Change) -> Iterable[Key]:
        pods = self._store.collection("pods").by_namespace.get(change.record.namespace, {})
        name = f'"resourceClaimTemplateName":"{change.record.name}"'.encode()
        return [(change.record.namespace, pod.name) for pod in pods.values() if name in pod.body]

    def visit(self, key: Key) -> float | None:
        """Makes the claims a pod lacks; frees those of a pod that is done."""
        record = self._store.get("pods", *key)
        pod = record.object() if record is not None else None
        if pod is None or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self._release(key[0], pod["metadata"]["uid"] if pod else None)
            return None
        if "deletionTimestamp" in pod["metadata"]:
            return None
        statuses = list(pod.get("status", {}).get("resourceClaimStatuses", ()))
        have = {one["name"] for one in statuses}
        for wanted in pod["spec"].get("resourceClaims", ()):
            template = wanted.get("resourceClaimTemplateName")
            if template and wanted["name"] not in have:
                name = self._make(pod, wanted["name"], template)
                if name:
                    statuses.append({"name": wanted["name"], "resourceClaimName": name})
        if len(statuses) > len(have):
            set_status(self._writer, "pods", pod, {**pod.get("status", {}), "resourceClaimStatuses": statuses})
        return None

    def _make(self, pod: Object, name: str, template_name: str) -> str | None:
        namespace = pod["metadata"]["namespace"]
        for storage, _, claim in self._store.dependents.get(pod["metadata"]["uid"], ()):
            record = self._store.get(_CLAIMS, namespace, claim) if storage == _CLAIMS else None
            if record is not None and record.object()["metadata"].get("annotations", {}).get(_POD_CLAIM) == name:
                return record.name
        record = self._store.get(_TEMPLATES, namespace, template_name)
        if record is None:
            return None
        template = record.object()["spec"]
        metadata = template.get("metadata", {})
        claim_object: Object = {
            "metadata": {
                "generateName": f"{pod['metadata']['name']}-{name}-",
                "labels": dict(metadata.get("labels", {})),
                "annotations": {**metadata.get("annotations", {}), _POD_CLAIM: name},
                "ownerReferences": [reference({**pod, "apiVersion": "v1", "kind": "Pod"})],
            },
            "spec": template.get("spec", {}),
        }
        return self._writer.create(BY_STORAGE[_CLAIMS], namespace, claim_object, internal()).name

    def _release(self, namespace: str, uid: str | None) -> None:
        """Drops reservations for a pod that is done, or, after a deletion, for all pods that are gone."""
        for record in list(self._store.collection(_CLAIMS).by_namespace.get(namespace, {}).values()):
            claim = record.object()
            status = claim.get("status", {})
            reserved = status.get("reservedFor", [])
            kept = [one for one in reserved if one["uid"] != uid and one["uid"] in self._store.by_uid]
            if len(kept) < len(reserved):
                status = {key: value for key, value in status.items() if key != "reservedFor"}
                if kept:
                    status["reservedFor"] = kept
                else:
                    status.pop("allocation", None)
                set_status(self._writer, _CLAIMS, claim, status)
