"""Mirrors of Endpoints that people write for Services without a selector: a slice for each of their subsets."""

from functools import partial

from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.store.collection import Key

_SLICES = "endpointslices.discovery.k8s.io"
_SKIPPED = "endpointslice.kubernetes.io/skip-mirror"
_LABELS = {"endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"}


class EndpointSliceMirroring:
    """Keeps the mirrors; they belong to the Endpoints and go with them."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def sources(self) -> dict[str, KeysOf]:
        """Follows Endpoints, and Services of the same names."""
        return {"endpoints": own_key, "services": own_key}

    def visit(self, key: Key) -> float | None:
        """Brings the mirrors of one object in line."""
        service, endpoints = self._api.read("services", *key), self._api.read("endpoints", *key)
        if endpoints is None:
            return None
        wanted: list[Object] = []
        if service is not None and not service["spec"].get("selector") and not _is_skipped(endpoints):
            wanted = [_mirrored(subset) for subset in endpoints.get("subsets", ())]
        have = [one.object() for one in self._api.owned(endpoints["metadata"]["uid"], _SLICES)]
        for index, content in enumerate(wanted):
            if index >= len(have):
                self._create(endpoints, content)
            elif any(have[index].get(part, []) != content[part] for part in ("endpoints", "ports")):
                name = have[index]["metadata"]["name"]
                self._api.update(_SLICES, key[0], name, partial(dict.update, **content))
        for surplus in have[len(wanted) :]:
            self._api.delete(_SLICES, key[0], surplus["metadata"]["name"])
        return None

    def _create(self, endpoints: Object, content: Object) -> None:
        name = endpoints["metadata"]["name"]
        labels = {**endpoints["metadata"].get("labels", {}), **_LABELS, "kubernetes.io/service-name": name}
        metadata = {"generateName": f"{name}-", "labels": labels, "ownerReferences": [reference(endpoints)]}
        namespace = endpoints["metadata"]["namespace"]
        self._api.create(_SLICES, namespace, {"metadata": metadata, "addressType": "IPv4", **content})


def _is_skipped(endpoints: Object) -> bool:
    metadata = endpoints["metadata"]
    leads = "control-plane.alpha.kubernetes.io/leader" in metadata.get("annotations", {})
    return leads or metadata.get("labels", {}).get(_SKIPPED) == "true"


def _mirrored(subset: Object) -> Object:
    """Endpoints and ports of a slice."""
    found = []
    for part, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(part, ()):
            copied = {key: address[key] for key in ("hostname", "nodeName", "targetRef") if key in address}
            found.append({"addresses": [address["ip"]], "conditions": {"ready": ready}, **copied})
    ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports", ())]
    return {"endpoints": found, "ports": ports}
