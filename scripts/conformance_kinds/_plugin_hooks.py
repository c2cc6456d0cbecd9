"""Conformance of the hooks of plugins that queue, admit and preempt pods."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kubestow import config
from kubestow.api.timestamps import parse_time
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Candidates, Code, PostFilterResult, Rejection, Wait, unresolvable
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.profiles import build_profiles

Expected = Mapping[str, Any]


class World(Protocol):
    """A plugin, and the cluster that it reads."""

    case: dict[str, Any]
    cluster: Cluster
    handle: Handle
    plugin: Any
    pods: list[PodInfo]
    activated: list[str]


def _order(world: World, expected: list[str]) -> str | None:
    queued_at = world.case.get("feed", {}).get("queuedAt", {})

    def key(pod: PodInfo) -> Any:
        return world.plugin.sort_key(pod.pod, parse_time(queued_at.get(pod.key, "2026-01-01T00:00:00Z")))

    found = [pod.key for pod in sorted(world.pods, key=key)]
    return None if found == expected else f"{found}"


def _pre_filter(world: World, expected: Expected) -> str | None:
    (pod,) = world.pods
    return status_difference(world.plugin.pre_filter(pod), expected)


def _permit(world: World, expected: Expected) -> str | None:
    (pod,) = world.pods
    return status_difference(_permitted(world, pod, expected["node"]), expected)


def _permitted(world: World, pod: PodInfo, node: str) -> Any:
    world.cluster.assume(pod, node)
    return world.plugin.permit(None, pod, node)


def status_difference(found: Any, expected: Expected | str) -> str | None:
    """Compare the answer of a hook with a recorded status, whose reasons are prefixes."""
    if isinstance(expected, str):
        expected = {"code": expected, "reasons": ()}
    code, reasons = Code.SUCCESS, tuple[str, ...]()
    if isinstance(found, Wait):
        code = Code.WAIT
    elif isinstance(found, Rejection):
        code, reasons = found.code, found.reasons
    elif isinstance(found, PostFilterResult):
        # Kubernetes 1.37 has a message for success, too.
        code, reasons = found.code, (found.message,) if found.message and found.code is not Code.SUCCESS else ()
    wanted = expected.get("reasons", reasons)
    if code.label == expected["code"] and len(reasons) == len(wanted) and all(map(str.startswith, reasons, wanted)):
        return None
    return f"{code.label} {reasons}, expected {expected}"


def _post_filter(world: World, expected: Expected) -> str | None:
    result = _preempted(world, world.pods[0])
    if (result.nominated_node or "") != expected.get("nominatedNode", ""):
        return f"nominated {result.nominated_node!r}, expected {expected}"
    return status_difference(result, expected)


def _victims(world: World, expected: list[str]) -> str | None:
    result = _preempted(world, world.pods[0])
    found = {victim.key for victim in result.victims}
    node = world.case["expect"].get("nominatedNode", result.nominated_node)
    return None if found == set(expected) and result.nominated_node == node else f"{found} on {result.nominated_node}"


def _eligible(world: World, expected: bool) -> str | None:
    message = _preempted(world, world.pods[0]).message
    return None if ("not eligible" not in message) is expected else f"message {message!r}"


def _preempted(world: World, pod: PodInfo) -> PostFilterResult:
    """Return the result of PostFilter after a cycle with the plugins of kube-scheduler."""
    profile = build_profiles(config.default(), in_tree_registry(), world.handle, lambda: 0.0)["default-scheduler"]
    evaluation = Evaluation(profile, world.cluster, world.handle.nominator, pod)
    if evaluation.pre_filter():
        evaluation.filter()
    for node, status in world.case.get("feed", {}).get("nodeStatuses", {}).items():
        if status["code"] == Code.UNRESOLVABLE.label and evaluation.verdicts is not None:
            position = evaluation.verdicts.position_of(world.cluster.nodes.row_of[node])
            assert position is not None
            evaluation.verdicts.override(position, unresolvable(*status["reasons"]))
    result = world.plugin.post_filter(pod, evaluation)
    if isinstance(result, Candidates):
        return result.choose(result.victims)
    assert isinstance(result, PostFilterResult)
    return result


def _steps(world: World, expected: list[Expected]) -> str | None:
    pods = {pod.key: pod for pod in world.pods}
    for number, step in enumerate(expected):
        pod = pods[step["pod"]]
        world.activated.clear()
        if step["call"] == "permit":
            found = _permitted(world, pod, step["node"])
        elif step["call"] == "postFilter":
            found = _preempted(world, pod)
        else:
            found = world.plugin.pre_filter(pod)
        difference = status_difference(found, step) if "code" in step else None
        if difference is None and "activated" in step and sorted(world.activated) != sorted(step["activated"]):
            difference = f"activated {world.activated}, expected {step['activated']}"
        if difference is not None:
            return f"step {number}: {difference}"
    return None


HOOKS: dict[str, Callable[[Any, Any], str | None]] = {
    "order": _order,
    "preFilter": _pre_filter,
    "permit": _permit,
    "postFilter": _post_filter,
    "victims": _victims,
    "eligible": _eligible,
    "steps": _steps,
    "nominatedNode": lambda _world, _expected: None,
}
