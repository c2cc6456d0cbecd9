"""Pods and volumes to try changes with, and what a node has against a pod."""

from typing import Any

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.insight.explain.against import Against, against
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.world import Setup, World
from kubestow.scheduler.cluster.pods import PodInfo

SETUP = Setup(config.default())
ZONE = "topology.kubernetes.io/zone"


def landing(objects: list[Any], pod: Pod, node: str) -> Against:
    return against(DryRun(World(SETUP, objects, 0.0), PodInfo(pod)), node)


def in_any(*terms: list[tuple[str, ...]]) -> dict[str, Any]:
    """Node affinity: any of some terms, each of which is conditions, all of them."""
    told = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, *values in term]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": told}}
    return {"affinity": {"nodeAffinity": required}}


def volume(**spec: Any) -> PersistentVolume:
    labels = {ZONE: spec.pop("zone")} if "zone" in spec else {}
    return convert(PersistentVolume, {"metadata": {"name": "pv", "labels": labels}, "spec": spec})


def bound_claim(*modes: str) -> PersistentVolumeClaim:
    metadata = {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    return convert(PersistentVolumeClaim, {"metadata": metadata, "spec": {"volumeName": "pv", "accessModes": modes}})
