"""Pods and volumes for explanations, and helpers that return suggested changes."""

from typing import Any

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.insight.explain.against import Against, against
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.world import Setup, World
from kubestow.insight.explain.would_fit import Suggestion, would_fit_if
from kubestow.scheduler.cluster.pods import PodInfo

SETUP = Setup(config.default())
ZONE = "topology.kubernetes.io/zone"
APP = {"app": "web"}
WEB = {"matchLabels": APP}


def suggestions(objects: list[Any], pod: Pod) -> list[Suggestion]:
    """Return the changes that are suggested for a pod in a new world."""
    return would_fit_if(DryRun(World(SETUP, objects, 0.0), PodInfo(pod)))


def changes_for(objects: list[Any], pod: Pod) -> list[str]:
    """Return the texts of the suggested changes."""
    return [one.change for one in suggestions(objects, pod)]


def required(kind: str, **term: Any) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spreading(key: str, skew: int = 1) -> dict[str, Any]:
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    return {"topologySpreadConstraints": [constraint]}


def landing(objects: list[Any], pod: Pod, node: str) -> Against:
    """Return the changes that send a pod to a node."""
    return against(DryRun(World(SETUP, objects, 0.0), PodInfo(pod)), node)


def in_any(*terms: list[tuple[str, ...]]) -> dict[str, Any]:
    """Return a node affinity with terms, each a list of conditions."""
    node_selector_terms = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, *values in term]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": node_selector_terms}}
    return {"affinity": {"nodeAffinity": required}}


def volume(**spec: Any) -> PersistentVolume:
    labels = {ZONE: spec.pop("zone")} if "zone" in spec else {}
    return convert(PersistentVolume, {"metadata": {"name": "pv", "labels": labels}, "spec": spec})


def bound_claim(*modes: str) -> PersistentVolumeClaim:
    metadata = {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    return convert(PersistentVolumeClaim, {"metadata": metadata, "spec": {"volumeName": "pv", "accessModes": modes}})
