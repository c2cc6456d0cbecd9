"""Endpoints of Services: EndpointSlices of a hundred pods each, and for older clients Endpoints of them all.

Endpoints that users write for Services without a selector are mirrored: each of their subsets becomes a slice.
"""

from collections.abc import Iterable
from functools import partial

from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.pods import DONE, Pods
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.controllers.selection import Selection
from kubestow.apiserver.selectors import LabelSelector, from_object
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
"""Endpoints, and the ports they have in common."""


def _selector(service: Object) -> LabelSelector | None:
    wanted = service["spec"].get("selector")
    return from_object({"matchLabels": wanted}) if wanted else None


class _Services:
    """Follows Services that have a selector, and the pods that these select."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._api = pods.api
        self._selection = Selection(pods.api.store, "services", _selector)

    def sources(self) -> dict[str, KeysOf]:
        """Follows Services and pods."""
        return {"services": self._selection.of_selector, "pods": self._selection.of_pod}

    def _found(self, service: Object, key: Key) -> list[Group] | None:
        """The endpoints of a Service by ports, which names make differ; None if they are not for us to know."""
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
    """Keeps the slices of Services."""

    def sources(self) -> dict[str, KeysOf]:
        """Follows slices, too: one that somebody deletes is made again."""
        return {**super().sources(), _SLICES: self._of_slice}

    def _of_slice(self, change: Change) -> Iterable[Key]:
        record = change.record
        gone = change.type == "DELETED" and record.labels.get(_MANAGED_BY) == _MANAGER
        return ((record.namespace, record.labels.get(_SERVICE, "")),) if gone else ()

    def visit(self, key: Key) -> float | None:
        """Brings the slices of one Service in line."""
        service = self._api.read("services", *key)
        found = self._found(service, key) if service is not None else None
        if service is None or found is None:
            return None
        chunks = [
            (group[at : at + _PER_SLICE], ports) for group, ports in found for at in range(0, len(group), _PER_SLICE)
        ] or [([], [])]
        labels = {_SERVICE: service["metadata"]["name"], _MANAGED_BY: _MANAGER}
        wanted = [{"endpoints": chunk, "ports": ports} for chunk, ports in chunks]
        _keep_slices(self._api, service, labels, wanted)
        return None


class Endpoints(_Services):
    """Keeps the Endpoints of Services: all addresses in one object, up to a thousand."""

    def visit(self, key: Key) -> float | None:
        """Brings the Endpoints of one Service in line."""
        service, have = self._api.read("services", *key), self._api.read("endpoints", *key)
        if service is None:
            if have is not None and _LEGACY in have["metadata"].get("labels", {}):
                self._api.delete("endpoints", *key)
            return None
        found = self._found(service, key)
        if found is None:
            return None
        labels = {**service["metadata"].get("labels", {}), _LEGACY: "endpoint-controller"}
        subsets = [subset for group, ports in found if (subset := _subset(group, ports))]
        if have is None:
            metadata = {"name": key[1], "labels": labels}
            self._api.create("endpoints", key[0], {"metadata": metadata, "subsets": subsets})
        elif have.get("subsets", []) != subsets or have["metadata"].get("labels") != labels:
            self._api.update("endpoints", *key, partial(_refill, subsets=subsets, labels=labels))
        return None


def _subset(found: list[Object], ports: list[Object]) -> Object:
    """Endpoints in the older form: ready ones and others, which have their ports in common."""
    subset: Object = {}
    for one in sorted(found[:_PER_OBJECT], key=lambda end: str(end["addresses"][0])):
        if not one["conditions"]["terminating"]:
            part = "addresses" if one["conditions"]["ready"] else "notReadyAddresses"
            address = {"ip": one["addresses"][0], "nodeName": one["nodeName"], "targetRef": one["targetRef"]}
            subset.setdefault(part, []).append(address)
    if subset:
        subset["ports"] = [{key: value for key, value in port.items() if value != ""} for port in ports]
    return subset


def _refill(endpoints: Object, subsets: list[Object], labels: dict[str, str]) -> None:
    endpoints["subsets"] = subsets
    endpoints["metadata"]["labels"] = labels


def _ports(service: Object, pod: Object) -> list[Object]:
    """The ports of a Service as a pod has them; one that is named is looked up, and left out if the pod has none."""
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


def _keep_slices(api: Api, owner: Object, labels: dict[str, str], wanted: list[Object]) -> None:
    """Make the slices of an owner hold the wanted endpoints and ports: one slice for each item, and no others."""
    metadata = owner["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    have = [one.object() for one in api.owned(metadata["uid"], _SLICES)]
    for index, content in enumerate(wanted):
        if index >= len(have):
            labelled = {"generateName": f"{name}-", "labels": {**metadata.get("labels", {}), **labels}}
            made = {**labelled, "ownerReferences": [reference(owner)]}
            api.create(_SLICES, namespace, {"metadata": made, "addressType": "IPv4", **content})
        elif any(have[index].get(part, []) != content[part] for part in content):
            api.update(_SLICES, namespace, have[index]["metadata"]["name"], partial(dict.update, **content))
    for surplus in have[len(wanted) :]:
        api.delete(_SLICES, namespace, surplus["metadata"]["name"])


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
        labels = {_MANAGED_BY: _MIRRORER, _SERVICE: endpoints["metadata"]["name"]}
        _keep_slices(self._api, endpoints, labels, wanted)
        return None


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
