"""Endpoints of Services: EndpointSlices of up to a hundred pods, and for older clients one Endpoints object.

Endpoints that users create for Services without a selector are mirrored: each of their subsets becomes a slice.
"""

from collections.abc import Iterable
from functools import partial

from kubestow.api.labels import Selector
from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.pods import DONE, Pods
from kubestow.apiserver.controllers.queue import own_key
from kubestow.apiserver.controllers.selection import Selection
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_SLICES = "endpointslices.discovery.k8s.io"
_SERVICE = "kubernetes.io/service-name"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER, _MIRRORER = "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"
_SKIPPED = "endpointslice.kubernetes.io/skip-mirror"
_LEGACY = "endpoints.kubernetes.io/managed-by"
_PER_SLICE = 100
_PER_OBJECT = 1000
Group = tuple[list[Object], list[Object]]
"""Endpoints, and the ports that all of them have."""


def _selector(service: Object) -> Selector | None:
    wanted = service["spec"].get("selector")
    return from_object({"matchLabels": wanted}) if wanted else None


class _Services:
    """Base of the controllers that watch Services with a selector, and the pods they select."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._api = pods.api
        self._selection = Selection(pods.api.store, "services", _selector)
        self.sources = {"services": self._selection.selector_keys, "pods": self._selection.pod_keys}

    def _groups(self, service: Object, key: Key) -> list[Group] | None:
        """Return the endpoints of a Service grouped by ports; None if it has no selector or is an ExternalName."""
        if not service["spec"].get("selector") or service["spec"].get("type") == "ExternalName":
            return None
        groups: dict[str, Group] = {}
        for record in self._selection.pods(key):
            pod = record.object()
            endpoint = self._endpoint(record, pod)
            if endpoint is not None:
                ports = _ports(service, pod)
                groups.setdefault(repr(ports), ([], ports))[0].append(endpoint)
        return list(groups.values())

    def _endpoint(self, record: Record, pod: Object) -> Object | None:
        address = pod.get("status", {}).get("podIP")
        facts = self._pods.facts(record)
        if not address or facts.phase in DONE:
            return None
        conditions = {
            "ready": facts.ready and not facts.deleting,
            "serving": facts.ready,
            "terminating": facts.deleting,
        }
        target = {"kind": "Pod", "namespace": record.namespace, "name": record.name, "uid": record.uid}
        return {"addresses": [address], "conditions": conditions, "nodeName": facts.node, "targetRef": target}


class EndpointSlices(_Services):
    """Maintains the EndpointSlices of Services."""

    def __init__(self, pods: Pods) -> None:
        super().__init__(pods)
        self.sources = {**self.sources, _SLICES: self._slice_keys}

    def _slice_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        deleted = change.type == "DELETED" and record.labels.get(_MANAGED_BY) == _MANAGER
        return ((record.namespace, record.labels.get(_SERVICE, "")),) if deleted else ()

    def reconcile(self, key: Key) -> float | None:
        """Update the slices of one Service."""
        service = self._api.read("services", *key)
        found = self._groups(service, key) if service is not None else None
        if service is None or found is None:
            return None
        chunks = [
            (group[at : at + _PER_SLICE], ports) for group, ports in found for at in range(0, len(group), _PER_SLICE)
        ] or [([], [])]
        labels = {_SERVICE: service["metadata"]["name"], _MANAGED_BY: _MANAGER}
        wanted = [{"endpoints": chunk, "ports": ports} for chunk, ports in chunks]
        _update_slices(self._api, service, labels, wanted)
        return None


class Endpoints(_Services):
    """Maintains the Endpoints of Services: all addresses in one object, up to a thousand."""

    def reconcile(self, key: Key) -> float | None:
        """Update the Endpoints of one Service."""
        service, have = self._api.read("services", *key), self._api.read("endpoints", *key)
        if service is None:
            if have is not None and _LEGACY in have["metadata"].get("labels", {}):
                self._api.delete("endpoints", *key)
            return None
        found = self._groups(service, key)
        if found is None:
            return None
        labels = {**service["metadata"].get("labels", {}), _LEGACY: "endpoint-controller"}
        subsets = [subset for group, ports in found if (subset := _subset(group, ports))]
        if have is None:
            metadata = {"name": key[1], "labels": labels}
            self._api.create("endpoints", key[0], {"metadata": metadata, "subsets": subsets})
        elif have.get("subsets", []) != subsets or have["metadata"].get("labels") != labels:
            self._api.update("endpoints", *key, partial(_set_content, subsets=subsets, labels=labels))
        return None


def _subset(found: list[Object], ports: list[Object]) -> Object:
    """Return the subset of an Endpoints object for endpoints with the same ports."""
    subset: Object = {}
    for one in sorted(found[:_PER_OBJECT], key=lambda end: str(end["addresses"][0])):
        if not one["conditions"]["terminating"]:
            part = "addresses" if one["conditions"]["ready"] else "notReadyAddresses"
            address = {"ip": one["addresses"][0], "nodeName": one["nodeName"], "targetRef": one["targetRef"]}
            subset.setdefault(part, []).append(address)
    if subset:
        subset["ports"] = [{key: value for key, value in port.items() if value != ""} for port in ports]
    return subset


def _set_content(endpoints: Object, subsets: list[Object], labels: dict[str, str]) -> None:
    endpoints["subsets"] = subsets
    endpoints["metadata"]["labels"] = labels


def _ports(service: Object, pod: Object) -> list[Object]:
    """Return the ports of a Service on a pod; named target ports are resolved, or omitted if the pod lacks them."""
    named = {
        (port.get("name"), port.get("protocol", "TCP")): port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports", ())
    }
    found = []
    for port in service["spec"].get("ports", ()):
        target, protocol = port.get("targetPort", port["port"]), port.get("protocol", "TCP")
        number = target if isinstance(target, int) else named.get((target, protocol))
        if number is not None:
            found.append({"name": port.get("name", ""), "protocol": protocol, "port": number})
    return found


def _update_slices(api: Api, owner: Object, labels: dict[str, str], wanted: list[Object]) -> None:
    """Create, update and delete the slices of an owner: one for each item of endpoints and ports."""
    metadata = owner["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    have = [one.object() for one in api.owned(metadata["uid"], _SLICES)]
    for index, content in enumerate(wanted):
        if index >= len(have):
            named = {"generateName": f"{name}-", "labels": {**metadata.get("labels", {}), **labels}}
            new = {**named, "ownerReferences": [reference(owner)]}
            api.create(_SLICES, namespace, {"metadata": new, "addressType": "IPv4", **content})
        elif any(have[index].get(part, []) != content[part] for part in content):
            api.update(_SLICES, namespace, have[index]["metadata"]["name"], partial(dict.update, **content))
    for surplus in have[len(wanted) :]:
        api.delete(_SLICES, namespace, surplus["metadata"]["name"])


class EndpointSliceMirroring:
    """Maintains the mirrored slices; they are owned by the Endpoints, and deleted with them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sources = {"endpoints": own_key, "services": own_key}

    def reconcile(self, key: Key) -> float | None:
        """Update the mirrored slices of one Endpoints object."""
        service, endpoints = self._api.read("services", *key), self._api.read("endpoints", *key)
        if endpoints is None:
            return None
        wanted: list[Object] = []
        if service is not None and not service["spec"].get("selector") and not _is_skipped(endpoints):
            wanted = [_mirrored(subset) for subset in endpoints.get("subsets", ())]
        labels = {_MANAGED_BY: _MIRRORER, _SERVICE: endpoints["metadata"]["name"]}
        _update_slices(self._api, endpoints, labels, wanted)
        return None


def _is_skipped(endpoints: Object) -> bool:
    metadata = endpoints["metadata"]
    is_election = "control-plane.alpha.kubernetes.io/leader" in metadata.get("annotations", {})
    return is_election or metadata.get("labels", {}).get(_SKIPPED) == "true"


def _mirrored(subset: Object) -> Object:
    """Return the endpoints and ports of a slice for a subset."""
    found = []
    for part, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(part, ()):
            copied = {key: address[key] for key in ("hostname", "nodeName", "targetRef") if key in address}
            found.append({"addresses": [address["ip"]], "conditions": {"ready": ready}, **copied})
    ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports", ())]
    return {"endpoints": found, "ports": ports}
