"""Objects in files that stand for a live cluster: manifests, or a scenario as it is when it begins."""

from typing import Any

import msgspec

from kubestow.apiserver.rules import cluster, pods
from kubestow.config import Features
from kubestow.model.codec import convert
from kubestow.model.workloads import PriorityClass
from kubestow.objects import Manifest, ObjectsError, decode, read

_OURS = "kubestow.dev/"
_DEFAULTS = {("v1", "Pod"): pods.default, ("v1", "Node"): cluster.default_node}


class _Metadata(msgspec.Struct):
    uid: str | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata


def cluster_in(files: tuple[str, ...]) -> list[Any]:
    """The objects, each once; nodes and pods that no API server has seen get its defaults. Raises ObjectsError."""
    manifests = read(files, unnamed=_OURS)
    if any(one.api_version.startswith(_OURS) for one in manifests):
        return _beginning(files)
    # `kubectl get pods,all` lists pods twice.
    return list({(type(one), one.metadata.uid): one for one in decode(map(_defaulted, manifests)).objects}.values())


def _beginning(files: tuple[str, ...]) -> list[Any]:
    """The nodes and objects of a scenario before anything has happened."""
    # Imported only now: who has no scenario must not pay for a simulator.
    from kubestow.simulator.scenario.building import build
    from kubestow.simulator.scenario.reading import read as read_scenario

    if "-" in files:
        raise ObjectsError(["standard input: has a Scenario, which is read from a file here: name the file"])
    known = Features.parse("GenericWorkload=true")
    with build(read_scenario(files), controllers="none", kubelets=False, features=known) as simulation:
        classes = [convert(PriorityClass, one) for one in simulation.objects("PriorityClass")]
        return [*simulation.plane.current.values(), *classes]


def _defaulted(manifest: Manifest) -> Manifest:
    default = _DEFAULTS.get((manifest.api_version, manifest.kind))
    if default is None:
        return manifest
    try:
        if msgspec.json.decode(manifest.data, type=_Head).metadata.uid:
            return manifest
        tree = msgspec.json.decode(manifest.data)
        default(tree)
    except (AttributeError, KeyError, TypeError, ValueError):
        # It is not what it says, which is told when it is decoded.
        return manifest
    return manifest._replace(data=msgspec.json.encode(tree))
