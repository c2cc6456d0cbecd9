"""Ephemeral volumes: a claim for each, made from the template in its pod, that goes with the pod."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.queue import KeysOf, owners_in
from kubestow.apiserver.errors import ApiError, conflict
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change

_CLAIMS = "persistentvolumeclaims"
_COMPONENT = "ephemeral_volume"


class EphemeralVolumes:
    """Makes the claims that pods lack; keys are those of pods."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def sources(self) -> dict[str, KeysOf]:
        """Follows pods with such volumes, and claims of pods."""
        return {"pods": _of_pod, _CLAIMS: owners_in(self._api.store, "pods")}

    def visit(self, key: Key) -> float | None:
        """Makes what one pod lacks."""
        pod = self._api.read("pods", *key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return None
        for volume in pod["spec"].get("volumes", ()):
            template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
            if template is not None:
                try:
                    self._ensure(pod, volume["name"], template)
                except ApiError as error:
                    message = f"ephemeral volume {volume['name']}: {error.message}"
                    self._api.event(_COMPONENT, pod, "FailedCreate", message, "Warning")
                    raise
        return None

    def _ensure(self, pod: Object, volume: str, template: Object) -> None:
        namespace, name = pod["metadata"]["namespace"], f"{pod['metadata']['name']}-{volume}"
        record = self._api.store.get(_CLAIMS, namespace, name)
        if record is None:
            wanted = template.get("metadata", {})
            metadata = {"name": name, "ownerReferences": [reference(pod)]}
            metadata |= {part: wanted[part] for part in ("labels", "annotations") if wanted.get(part)}
            self._api.create(_CLAIMS, namespace, {"metadata": metadata, "spec": template.get("spec", {})})
        elif pod["metadata"]["uid"] not in record.owners:
            raise conflict("", _CLAIMS, name, f"PVC was not created for pod {namespace}/{pod['metadata']['name']}")


def _of_pod(change: Change) -> Iterable[Key]:
    if change.type != "DELETED" and b'"ephemeral":{' in change.record.body:
        yield change.record.namespace, change.record.name
