"""Files of other tools, read as objects and changes of a scenario.

kube-scheduler-simulator   a snapshot: one JSON object with pods, nodes, pvs, pvcs, storageClasses, priorityClasses,
                           namespaces; a record: lines of {time, event, resource}
KWOK                       a snapshot is ordinary YAML, followed by ResourcePatch documents with changes and their times
SimKube                    .sktrace: msgpack, version 2: events with applied and deleted objects, lifecycles of pods
open-simulator             simon/v1alpha1 Config, which lists files and folders of YAML
openb                      CSV files of nodes and of pods of a cluster with GPUs

Pods lose the nodes to which these tools saw them bound: the simulation schedules them again.
"""

import csv
import io
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from kubestow.apiserver.kubelets.scripts import PREFIX
from kubestow.apiserver.resources import BY_STORAGE

Object = dict[str, Any]

_SNAPSHOT = {
    "namespaces": ("v1", "Namespace"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "nodes": ("v1", "Node"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "pods": ("v1", "Pod"),
}
_RUN = f"{PREFIX}run-seconds"
GPU, GPU_MILLI, GPU_MODEL = "nvidia.com/gpu", "kubestow.dev/gpu-milli", "kubestow.dev/gpu-model"


class Planned(NamedTuple):
    """A planned change of an object."""

    time: float
    """Seconds since the beginning."""
    op: str
    """apply, patch or delete."""
    object: Object
    place: str = ""
    """The file and the position in it."""


class ForeignError(ValueError):
    """A file of another tool is invalid; the message contains position and reason."""


def unbound(obj: Object) -> Object:
    """Return a pod without its node and status; return other objects unchanged."""
    if obj.get("kind") != "Pod":
        return obj
    spec = {key: value for key, value in obj.get("spec", {}).items() if key != "nodeName"}
    return {**{key: value for key, value in obj.items() if key != "status"}, "spec": spec, "metadata": _metadata(obj)}


def _metadata(obj: Object) -> Object:
    """Return the metadata without the fields that an API server sets."""
    kept = ("name", "namespace", "labels", "annotations")
    return {key: value for key, value in (obj.get("metadata") or {}).items() if key in kept}


# kube-scheduler-simulator


def is_snapshot(tree: Any) -> bool:
    """Return whether this is a snapshot."""
    return isinstance(tree, dict) and "kind" not in tree and {"pods", "nodes"} <= tree.keys()


def snapshot(tree: Object) -> Iterator[Object]:
    """Yield the objects of a snapshot, in the order of their dependencies."""
    for field, (api_version, kind) in _SNAPSHOT.items():
        for obj in tree.get(field) or ():
            yield {**obj, "apiVersion": api_version, "kind": kind}


def is_record(tree: Any) -> bool:
    """Return whether this is a line of a record."""
    return isinstance(tree, dict) and {"time", "event", "resource"} <= tree.keys()


def recorded(tree: Object, begin: float | None) -> tuple[Planned, float]:
    """Return the change in a line, and the time at which the record began; raises ForeignError."""
    try:
        time = datetime.fromisoformat(tree["time"]).timestamp()
    except (TypeError, ValueError):
        raise ForeignError(f"time: {tree['time']!r} is not a time as in 2026-01-01T00:00:00Z") from None
    begin = time if begin is None else begin
    if time < begin:
        raise ForeignError(f"time: {tree['time']} is before the first line")
    op = {"Add": "apply", "Update": "apply", "Delete": "delete"}.get(tree["event"])
    if op is None:
        raise ForeignError(f"event: {tree['event']!r} is none of Add, Update and Delete")
    return Planned(time - begin, op, unbound(tree["resource"])), begin


# KWOK


def resource_patch(tree: Object) -> Planned | None:
    """Return the change in a ResourcePatch; None if its resource is not supported. Raises ForeignError."""
    resource, target = tree.get("resource") or {}, tree.get("target") or {}
    storage = resource.get("resource", "") + (f".{resource['group']}" if resource.get("group") else "")
    known = BY_STORAGE.get(storage)
    if known is None:
        return None
    nanoseconds, method = tree.get("durationNanosecond"), tree.get("method")
    if not isinstance(nanoseconds, int) or nanoseconds < 0:
        raise ForeignError(f"durationNanosecond: must be a number of nanoseconds, 0 or more, not {nanoseconds!r}")
    ops = {"create": "apply", "patch": "patch", "delete": "delete"}
    if method not in ops:
        raise ForeignError(f"method: {method!r} is none of {', '.join(ops)}")
    content = _without_offsets(tree.get("template") or {})
    metadata = {**(content.get("metadata") or {}), "name": target.get("name", "")}
    if target.get("namespace"):
        metadata["namespace"] = target["namespace"]
    obj = {**content, "apiVersion": known.api_version, "kind": known.kind, "metadata": metadata}
    return Planned(nanoseconds / 1e9, ops[method], unbound(obj) if method == "create" else obj)


def _without_offsets(tree: Any) -> Any:
    """Remove times that KWOK wrote relative to its own start."""
    if isinstance(tree, dict):
        found = {key: _without_offsets(value) for key, value in tree.items()}
        return {key: value for key, value in found.items() if value is not None}
    if isinstance(tree, list):
        return [_without_offsets(one) for one in tree]
    return None if isinstance(tree, str) and tree.startswith("$(time-offset") else tree


# SimKube


def sktrace(data: bytes) -> Iterator[Planned]:
    """Yield the changes of a trace; raises ForeignError."""
    try:
        tree = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise ForeignError(f"not a SimKube trace, or cut off: {error}") from None
    if not isinstance(tree, dict) or not isinstance(tree.get("events"), list):
        raise ForeignError("not a SimKube trace: it has no events")
    if tree.get("version") != 2:
        raise ForeignError(f"version: is {tree.get('version')}; this program reads SimKube's version 2")
    lives = _lifecycles(tree.get("pod_lifecycles") or {})
    begin = min((event["ts"] for event in tree["events"]), default=0)
    for event in tree["events"]:
        for field, op in (("applied_objs", "apply"), ("deleted_objs", "delete")):
            for obj in event.get(field, ()):
                yield Planned(float(event["ts"] - begin), op, _with_run_time(unbound(obj), lives))


def _lifecycles(found: dict[Any, Any]) -> dict[tuple[str, str], float]:
    """Return the average run time of the pods of each object, by kind and namespace/name."""
    spans: dict[tuple[str, str], list[float]] = {}
    for owner, by_spec in found.items():
        kind = str(owner[0]).rpartition(".")[2]
        for lives in by_spec.values():
            for life in lives:
                finished = life.get("Finished") if isinstance(life, dict) else None
                if finished:
                    spans.setdefault((kind, str(owner[1])), []).append(float(finished[1] - finished[0]))
    return {key: sum(values) / len(values) for key, values in spans.items()}


def _with_run_time(obj: Object, lives: dict[tuple[str, str], float]) -> Object:
    metadata = obj.get("metadata", {})
    seconds = lives.get((str(obj.get("kind")), f"{metadata.get('namespace', 'default')}/{metadata.get('name')}"))
    if seconds is None:
        return obj
    annotation = {_RUN: f"{seconds:g}"}
    if obj["kind"] == "Pod":
        return {**obj, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotation}}}
    template = obj.get("spec", {}).get("template")
    if not isinstance(template, dict):
        return obj
    inner = template.get("metadata") or {}
    annotated = {**template, "metadata": {**inner, "annotations": {**inner.get("annotations", {}), **annotation}}}
    return {**obj, "spec": {**obj["spec"], "template": annotated}}


# open-simulator


def is_simon(tree: Any) -> bool:
    """Return whether this is an open-simulator configuration."""
    return isinstance(tree, dict) and tree.get("kind") == "Config" and tree.get("apiVersion") == "simon/v1alpha1"


def simon_paths(tree: Object) -> list[str]:
    """Return the files and folders that it lists, in order; raises ForeignError if one is not supported."""
    spec = tree.get("spec") or {}
    cluster = (spec.get("cluster") or {}).get("customConfig")
    if not cluster:
        raise ForeignError("spec.cluster.customConfig: is missing; record a live cluster with kubestow record")
    charts = [app.get("name") for app in spec.get("appList") or () if app.get("chart")]
    if charts:
        raise ForeignError(f"spec.appList: {charts[0]} is a chart; render it with helm template, and list the result")
    return [cluster, *(app["path"] for app in spec.get("appList") or () if app.get("path"))]


# openb


def openb(text: str) -> tuple[list[Object], list[Planned]]:
    """Return the nodes or the pods of a CSV file; raises ForeignError with the line."""
    rows = csv.DictReader(io.StringIO(text))
    fields = set(rows.fieldnames or ())
    if {"sn", "cpu_milli", "memory_mib", "gpu"} <= fields:
        return [one for _, one in _rows(rows, _openb_node)], []
    if {"name", "cpu_milli", "memory_mib", "num_gpu", "creation_time"} <= fields:
        pods = sorted((one for _, one in _rows(rows, _openb_pod)), key=lambda one: one.time)
        return [], pods
    raise ForeignError("needs openb's columns: sn, cpu_milli, memory_mib, gpu of nodes, or name, num_gpu, ... of pods")


def _rows(rows: Any, make: Callable[[dict[str, str]], Any]) -> Iterator[tuple[int, Any]]:
    for number, row in enumerate(rows, start=2):
        try:
            yield number, make(row)
        except (KeyError, TypeError, ValueError) as error:
            raise ForeignError(f"line {number}: {error}") from None


def _openb_node(row: dict[str, str]) -> Object:
    gpus = int(row["gpu"])
    size = {"cpu": f"{int(row['cpu_milli'])}m", "memory": f"{int(row['memory_mib'])}Mi", "pods": "1000"}
    size |= {GPU: str(gpus), GPU_MILLI: str(1000 * gpus)} if gpus else {}
    labels = {"kubernetes.io/hostname": row["sn"]} | ({GPU_MODEL: row["model"]} if row.get("model") else {})
    metadata = {"name": row["sn"], "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": size, "allocatable": size}}


def _openb_pod(row: dict[str, str]) -> Planned:
    created, gpus = float(row["creation_time"]), int(row["num_gpu"] or 0)
    if created < 0:
        raise ValueError("creation_time: must not be negative")
    amounts = {"cpu": f"{int(row['cpu_milli'])}m", "memory": f"{int(row['memory_mib'])}Mi"}
    milli = int(row.get("gpu_milli") or 0)
    if gpus:
        # A share of one GPU is a share of all GPUs of the node: individual GPUs are not modelled.
        amounts |= {GPU_MILLI: str(milli or 1000)} if gpus == 1 and milli < 1000 else {GPU: str(gpus)}
        amounts |= {GPU_MILLI: str(1000 * gpus)} if GPU in amounts else {}
    began = float(row.get("scheduled_time") or created)
    spec: Object = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "openb"}]}
    limits = {key: value for key, value in amounts.items() if "/" in key}
    spec["containers"][0]["resources"] = {"requests": amounts, "limits": limits}
    if row.get("gpu_spec"):
        match = {"key": GPU_MODEL, "operator": "In", "values": row["gpu_spec"].split("|")}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    metadata: Object = {"name": row["name"], "labels": {"qos": row.get("qos") or "none"}}
    if row.get("deletion_time"):
        metadata["annotations"] = {_RUN: f"{max(float(row['deletion_time']) - began, 0.0):g}"}
    else:
        metadata["annotations"] = {_RUN: "inf"}
    return Planned(created, "apply", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
