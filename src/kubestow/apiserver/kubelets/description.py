"""Descriptions of nodes: a number of default nodes, a YAML file of groups, or Node manifests.

nodes:
  - count: 3            # number of nodes (default 1)
    name: small-{}      # {} is replaced by the number, from 0 (default node-{})
    cpu: 4
    memory: 16Gi
    pods: 110
    zones: [a, b]       # assigned in turn as topology.kubernetes.io/zone
    labels: {disk: ssd}
    taints: [{key: dedicated, value: batch, effect: NoSchedule}]
    resources: {example.com/gpu: 2}
"""

from pathlib import Path
from typing import Any

import msgspec

from kubestow.api import quantity
from kubestow.api.files import ObjectsError, documents
from kubestow.api.files.sources import describe_error, sources

Object = dict[str, Any]


class NodesFileError(ValueError):
    """The description is invalid; the message names file, entry and field."""


class Taint(msgspec.Struct, forbid_unknown_fields=True):
    """A taint of a described node."""

    key: str
    effect: str
    value: str = ""


class Group(msgspec.Struct, forbid_unknown_fields=True):
    """A group of nodes with equal capacity, labels and taints."""

    count: int = 1
    name: str = "node-{}"
    cpu: str | int | float = "8"
    memory: str | int = "32Gi"
    pods: int = 110
    storage: str | int = "100Gi"
    zones: list[str] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[Taint] = []
    resources: dict[str, str | int] = {}


def default_nodes(count: int) -> list[Object]:
    """Return a number of default nodes, spread over three zones."""
    return expand(Group(count=count, zones=["zone-a", "zone-b", "zone-c"]))


def read(path: Path) -> list[Object]:
    """Read the nodes of a file. Raises NodesFileError if it is invalid."""
    found: list[Object] = []
    try:
        for document in (one for source in sources(str(path)) for one in documents(source)):
            tree = msgspec.json.decode(document.data)
            if isinstance(tree, dict) and tree.get("kind") == "Node":
                found.append(tree)
            elif isinstance(tree, dict) and isinstance(tree.get("nodes"), list):
                for index, entry in enumerate(tree["nodes"]):
                    found += _group(document.place, index, entry)
            elif not isinstance(tree, dict) or "kind" not in tree:
                raise NodesFileError(f"{document.place}: expected Node manifests or `nodes:` with a list of groups")
    except (OSError, UnicodeDecodeError) as error:
        raise NodesFileError(f"nodes file {path} {describe_error(error)}") from error
    except ObjectsError as error:
        raise NodesFileError(str(error)) from error
    if not found:
        raise NodesFileError(f"{path}: describes no nodes")
    return found


def _group(place: str, index: int, entry: Any) -> list[Object]:
    try:
        group = msgspec.convert(entry, Group)
        if group.count > 1 and "{}" not in group.name:
            raise NodesFileError(f"{place}: nodes[{index}].name: needs {{}} for the number, as in small-{{}}")
        for amount in (group.cpu, group.memory, group.storage, *group.resources.values()):
            quantity.nano(amount)
    except (msgspec.ValidationError, quantity.QuantityError) as error:
        raise NodesFileError(f"{place}: nodes[{index}]: {error}") from error
    return expand(group)


def expand(group: Group) -> list[Object]:
    """Return the nodes of a group."""
    amounts = {
        "cpu": quantity.canonical(group.cpu),
        "memory": quantity.canonical(group.memory),
        "pods": str(group.pods),
        "ephemeral-storage": quantity.canonical(group.storage),
        **{name: quantity.canonical(amount) for name, amount in group.resources.items()},
    }
    nodes = []
    for number in range(group.count):
        name = group.name.replace("{}", str(number))
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        if group.zones:
            labels["topology.kubernetes.io/zone"] = group.zones[number % len(group.zones)]
        node: Object = {
            "metadata": {"name": name, "labels": {**labels, **group.labels}},
            "status": {"capacity": dict(amounts), "allocatable": dict(amounts)},
        }
        if group.annotations:
            node["metadata"]["annotations"] = dict(group.annotations)
        if group.taints:
            node["spec"] = {"taints": [msgspec.to_builtins(taint) for taint in group.taints]}
        nodes.append(node)
    return nodes
