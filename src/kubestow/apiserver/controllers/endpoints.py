"""Endpoints of Services: EndpointSlices of a hundred pods each, and for older clients Endpoints of them all."""

from functools import partial

from kubestow.apiserver.controllers.api import Object, reference
from kubestow.apiserver.controllers.pods import DONE, Pods
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.controllers.selection import Selection
from kubestow.apiserver.selectors import LabelSelector, from_object
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Record

_SLICES = "endpointslices.discovery.k8s.io"
_SERVICE = "kubernetes.io/service-name"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_LEGACY = "endpoints.kubernetes.io/managed-by"
_PER_SLICE = 100
_PER_OBJECT = 1000


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

    def _found(self, service: Object, key: Key) -> tuple[list[Object], list[Object]] | None:
        """The endpoints and ports of a Service; None if they are not for us to know."""
        if not service["spec"].get("selector") or service["spec"].get("type") == "ExternalName":
            return None
        records = self._selection.pods(key)
        sample = [record.object() for record in records[:1]]
        ports = [
            {"name": port.get("name", ""), "protocol": port.get("protocol", "TCP"), "port": _number(port, sample)}
            for port in service["spec"].get("ports", ())
        ]
        return [one for one in map(self._endpoint, records) if one is not None], ports

    def _endpoint(self, record: Record) -> Object | None:
        pod = record.object()
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

    def visit(self, key: Key) -> float | None:
        """Brings the slices of one Service in line."""
        service = self._api.read("services", *key)
        known = self._found(service, key) if service is not None else None
        if service is None or known is None:
            return None
        found, ports = known
        chunks = [found[at : at + _PER_SLICE] for at in range(0, len(found), _PER_SLICE)] or [[]]
        have = [one.object() for one in self._api.owned(service["metadata"]["uid"], _SLICES)]
        for index, chunk in enumerate(chunks):
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
        labels = {_SERVICE: name, _MANAGED_BY: "endpointslice-controller.k8s.io"}
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
        known = self._found(service, key)
        if known is None:
            return None
        labels = {**service["metadata"].get("labels", {}), _LEGACY: "endpoint-controller"}
        subsets = _subsets(*known)
        if have is None:
            metadata = {"name": key[1], "labels": labels}
            self._api.create("endpoints", key[0], {"metadata": metadata, "subsets": subsets})
        elif have.get("subsets", []) != subsets or have["metadata"].get("labels") != labels:
            self._api.update("endpoints", *key, partial(_refill, subsets=subsets, labels=labels))
        return None


def _subsets(found: list[Object], ports: list[Object]) -> list[Object]:
    """Endpoints in the older form: ready ones and others, which have their ports in common."""
    subset: Object = {}
    for one in sorted(found[:_PER_OBJECT], key=lambda end: str(end["addresses"][0])):
        if not one["conditions"]["terminating"]:
            part = "addresses" if one["conditions"]["ready"] else "notReadyAddresses"
            address = {"ip": one["addresses"][0], "nodeName": one["nodeName"], "targetRef": one["targetRef"]}
            subset.setdefault(part, []).append(address)
    if not subset:
        return []
    subset["ports"] = [{key: value for key, value in port.items() if value != ""} for port in ports]
    return [subset]


def _refill(endpoints: Object, subsets: list[Object], labels: dict[str, str]) -> None:
    endpoints["subsets"] = subsets
    endpoints["metadata"]["labels"] = labels


def _fill(piece: Object, endpoints: list[Object], ports: list[Object]) -> None:
    piece.update(endpoints=endpoints, ports=ports)


def _number(port: Object, pods: list[Object]) -> int:
    """The port of the pods; one that is named is looked up in them."""
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for one in container.get("ports", ()):
                if one.get("name") == target:
                    return int(one["containerPort"])
    return int(port["port"])
