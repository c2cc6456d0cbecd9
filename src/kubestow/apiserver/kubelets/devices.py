"""The devices of simulated nodes: published by a simulated driver, or read from a file.

The driver is a controller. For each new node it publishes the slices of a pool with the node's name; they are owned by
the node, and deleted with it. If a server with stored data has other slices than requested, the pool gets a new
generation. The built-in kinds:

- `gpus`: four whole GPUs, or the given number;
- `partitionable-gpus`: four GPUs, each allocatable as a whole, in halves or in quarters, which share its memory.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kubestow.api import files as objects
from kubestow.api.files import ObjectsError
from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change

DRIVER = "gpu.kubestow.dev"
RESOURCE = "example.com/gpu"
_VERSION = "resource.k8s.io/v1"
_SLICES, _CLASSES = "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io"
_STORAGES = {"ResourceSlice": _SLICES, "DeviceClass": _CLASSES}
_GPUS = 4
_MOST = 128
_GIBIBYTES = 40
_QUARTERS = 4
_PROFILES = {"whole": 4, "half": 2, "quarter": 1}
"""Number of quarters of a GPU in each kind of partition."""
_SHARES = {"partitionable-gpus": True, "gpus": False}


class DevicesError(ValueError):
    """The devices are invalid; the message names the flag, or the file and the object."""


class Devices:
    """The value of --devices: nothing, a kind, a number, or a file."""

    def __init__(self, wanted: str) -> None:
        self._objects: list[tuple[str, Object]] = []
        self._count, self._partitionable = 0, _SHARES.get(wanted, False)
        if wanted in _SHARES:
            self._count = _GPUS
        elif wanted.isdecimal():
            self._count = int(wanted)
            if not 1 <= self._count <= _MOST:
                raise DevicesError(f"--devices: {wanted}: a node can have 1 to {_MOST} devices")
        elif wanted:
            self._objects = _read(wanted)
        if self._count:
            selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
            spec = {"selectors": selectors, "extendedResourceName": RESOURCE}
            self._objects = [(wanted, {"kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": spec})]

    def add(self, writer: Writer) -> None:
        """Create the missing objects that do not depend on nodes. Raises DevicesError if one is rejected."""
        for source, obj in self._objects:
            storage, name = _STORAGES[obj["kind"]], obj["metadata"]["name"]
            if writer.store.get(storage, "", name) is None:
                try:
                    writer.create(BY_STORAGE[storage], "", obj, Intent(manager="kubestow", validation="Strict"))
                except ApiError as error:
                    raise DevicesError(f"--devices: {source}: {error.message}") from error

    def slices(self, node: str) -> list[Object]:
        """Return the specs of the slices of a node."""
        if not self._count:
            return []
        place = {"driver": DRIVER, "nodeName": node}
        pool = {"name": node, "generation": 1}
        if not self._partitionable:
            devices = [_gpu(f"gpu-{number}", number, "whole") for number in range(self._count)]
            return [{**place, "pool": {**pool, "resourceSliceCount": 1}, "devices": devices}]
        both = {**place, "pool": {**pool, "resourceSliceCount": 2}}
        counters = [{"name": f"gpu-{number}", "counters": _quarters(0, _QUARTERS)} for number in range(self._count)]
        return [{**both, "sharedCounters": counters}, {**both, "devices": _partitions(self._count)}]


def _partitions(gpus: int) -> list[Object]:
    found = []
    for number in range(gpus):
        for profile, size in _PROFILES.items():
            for index, first in enumerate(range(0, _QUARTERS, size)):
                name = f"gpu-{number}" if profile == "whole" else f"gpu-{number}-{profile}-{index}"
                taken = {"counterSet": f"gpu-{number}", "counters": _quarters(first, size)}
                found.append({**_gpu(name, number, profile), "consumesCounters": [taken]})
    return found


def _gpu(name: str, number: int, profile: str) -> Object:
    attributes = {"model": {"string": "a100"}, "profile": {"string": profile}, "index": {"int": number}}
    memory = f"{_GIBIBYTES * _PROFILES[profile] // _QUARTERS}Gi"
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}}


def _quarters(first: int, size: int) -> Object:
    return {f"quarter-{number}": {"value": "1"} for number in range(first, first + size)}


def _read(path: str) -> list[tuple[str, Object]]:
    """Return the objects of a file, each with its description for error messages."""
    kinds = f"expected a number, {' or '.join(sorted(_SHARES))}, or a file of ResourceSlices and DeviceClasses"
    try:
        found = objects.read([path])
    except ObjectsError as error:
        hint = "" if Path(path).exists() else f"; {kinds}"
        raise DevicesError(f"--devices: {error}{hint}") from error
    seen = set()
    for manifest in found:
        if manifest.api_version != _VERSION or manifest.kind not in _STORAGES or not manifest.name:
            raise DevicesError(
                f"--devices: {manifest}: is not a ResourceSlice or DeviceClass of {_VERSION} with a name"
            )
        if (manifest.kind, manifest.name) in seen:
            raise DevicesError(f"--devices: {manifest}: duplicate name; names must be unique within a kind")
        seen.add((manifest.kind, manifest.name))
    return [(str(manifest), msgspec.json.decode(manifest.data)) for manifest in found]


class DeviceDriver:
    """Publishes the devices of every node; keys are those of nodes."""

    def __init__(self, api: Api, devices: Devices) -> None:
        self._api = api
        self._devices = devices
        self.sources = {"nodes": self._node_keys}

    def _node_keys(self, change: Change) -> Iterable[Key]:
        return (("", change.record.name),) if change.previous is None and change.type != "DELETED" else ()

    def reconcile(self, key: Key) -> float | None:
        """Publish the devices of a node, unless its slices already contain them."""
        node = self._api.store.get("nodes", *key)
        if node is None:
            return None
        specs = self._devices.slices(node.name)
        wanted = {f"{node.name}-{DRIVER}-{number}": spec for number, spec in enumerate(specs)}
        have = {one.name: one.object()["spec"] for one in self._api.owned(node.uid, _SLICES)}
        have = {name: spec for name, spec in have.items() if spec["driver"] == DRIVER}
        if not wanted or _names(wanted) == _names(have):
            return None
        generation = 1 + max((spec["pool"]["generation"] for spec in have.values()), default=0)
        for name in have:
            self._api.delete(_SLICES, "", name)
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}
        for name, spec in wanted.items():
            spec["pool"]["generation"] = generation
            self._api.create(_SLICES, "", {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec})
        return None


def _names(slices: dict[str, Object]) -> dict[str, list[str]]:
    """Return the device and counter names of each slice; only these are compared, since users can taint devices."""
    return {
        name: [one["name"] for kind in ("devices", "sharedCounters") for one in spec.get(kind, ())]
        for name, spec in slices.items()
    }
