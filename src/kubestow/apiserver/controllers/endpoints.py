"""Endpoints of Services: EndpointSlices of a hundred pods each, and for older clients Endpoints of them all."""

from collections.abc import Iterable
from functools import partial

from kubestow.apiserver.controllers.api import Object, reference
from kubestow.apiserver.controllers.pods import DONE, Pods
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.controllers.selection import Selection
from kubestow.apiserver.selectors import LabelSelector, from_object
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_SLICES = "endpointslices.discovery.k8s.io"
_SERVICE = "kubernetes.io/service-name"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"
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
        have = [one.object() for one in self._api.owned(service["metadata"]["uid"], _SLICES)]
        for index, (chunk, ports) in enumerate(chunks):
            if index >= len(have):
                self._create(service, chunk, ports)
            elif (have[index].get("endpoints") or [], have[index].get("ports")) != (chunk, ports):
                name = have[index]["metadata"]["name"]
                self._api.update(_SLICES, key[0], name, partial(_fill, endpoints=chunk, ports=ports))
        for surplus in have[len(chunks) :]:
            self._api.delete(_SLICES, key[0], surplus["metadata"]["name"])
        return None

    def _create(self, service: Object, endpoints: list[Object], ports: list[Object]) -> None:
        name = service["metadata"]["name"]
        labels = {_SERVICE: name, _MANAGED_BY: _MANAGER}
        body: Object = {
            "metadata": {
                "generateName": f"{name}-",
                "labels": {**service["metadata"].get("labels", {}), **labels},
                "ownerReferences": [reference(service)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        }
        self._api.create(_SLICES, service["metadata"]["namespace"], body)


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


def _fill(piece: Object, endpoints: list[Object], ports: list[Object]) -> None:
    piece.update(endpoints=endpoints, ports=ports)


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
