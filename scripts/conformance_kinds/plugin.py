"""Conformance of the plugins of `kubestow.contrib`: hooks of one plugin, or the nodes of pods in a whole scheduler."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from msgspec.structs import replace

from conformance_kinds._plugin_hooks import HOOKS, status_difference
from kubestow.api.codec import convert
from kubestow.api.custom_kinds import resource_of
from kubestow.api.kinds import KINDS
from kubestow.api.pod import Pod
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.background import SinglePolls
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.detached import FixedClock
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.framework.results import SKIP
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.testing import SchedulerHarness

Case = dict[str, Any]

_NOW = 1_800_000_000.0
"""The time in cases that are not end to end."""
_SECONDS = 150.0
"""The virtual time after which a cluster has settled; the longest wait of the original tests is 120 s."""


def check(case: Case) -> str | None:
    """Return the first difference from the expected result, None if there is none."""
    expect = case["expect"]
    if "configError" in expect:
        return _refused(case, expect["configError"])
    if "profile" in case:
        return _end_to_end(case)
    world = World(case)
    for key, check_key in _CHECKS.items():
        if key in expect and (difference := check_key(world, expect[key])) is not None:
            return f"{key}: {difference}"
    unknown = expect.keys() - _CHECKS.keys()
    return f"no check of {', '.join(sorted(unknown))}" if unknown else None


class World:
    """A plugin, and the cluster that it reads."""

    def __init__(self, case: Case) -> None:
        plugins = PluginCollection()
        _ = plugins[case["plugin"]]  # loads it
        self.cls: Any = plugins.plugin(case["plugin"])
        self.case = case
        self.cluster = Cluster()
        self.nominator = Nominator()
        self.activated: list[str] = []
        for manifest in case["objects"]:
            obj = object_of(manifest, self.cls)
            if isinstance(obj, Pod):
                self._add(obj)
            elif manifest["kind"] == "Node":
                self.cluster.set_node(obj)
            else:
                self.cluster.set_object(obj)
        self.pods = [PodInfo(_with_uid(convert(Pod, manifest))) for manifest in case["pods"]]
        for pod in self.pods:
            self._add(pod.pod)
        # The handle of a test belongs to no plugin: the name is empty.
        self._background = SinglePolls({"": _feed(case, _NOW)} if "window" in case.get("feed", ()) else {})
        self.handle = offline_handle(
            self.cluster,
            clock=FixedClock(_NOW),
            nominator=self.nominator,
            activate=self._activate,
            _background=self._background,
        )
        registry = plugins.register(in_tree_registry())
        self.plugin = self._make(registry, case)

    def _make(self, registry: Registry, case: Case) -> Any:
        plugin = registry.make(case["plugin"], case["args"], self.handle)
        self._background.take_given(_NOW)
        return plugin

    def _add(self, pod: Pod) -> None:
        pod = _with_uid(pod)
        if pod.spec.nodeName:
            self.cluster.set_pod(pod)
        else:
            self.cluster.pod_indexes.set_unscheduled(pod)
            self.nominator.nominate(pod)

    def _activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [pod.key for pod in pods]


def _with_uid(pod: Pod) -> Pod:
    return pod if pod.metadata.uid else replace(pod, metadata=replace(pod.metadata, uid=pod.key))


def _feed(case: Case, now: float) -> Case:
    """Return the answer of the load watcher, with times as if it had been given now."""
    feed: Case = case["feed"]
    ago = now - feed["timestamp"] if feed["timestamp"] else 0
    window = {key: value + ago if value and key != "duration" else value for key, value in feed["window"].items()}
    return {**feed, "timestamp": feed["timestamp"] + ago, "window": window}


def object_of(manifest: Case, plugin: Any) -> Any:
    """Return the object of a manifest of a built-in kind, or of a kind that the plugin watches."""
    name = manifest["apiVersion"], manifest["kind"]
    for watched in getattr(plugin, "watches", ()):
        kind = getattr(watched, "kind", watched)
        resource = resource_of(kind)
        if resource is not None and (resource.api_version, resource.kind) == name:
            return convert(kind, manifest)
    return convert(KINDS[name], manifest)


def _refused(case: Case, text: str) -> str | None:
    try:
        World(case)
    except ValueError as error:
        return None if text in str(error) else f"refused with {error}, expected {text}"
    return f"accepted, expected {text}"


def _filter(world: World, expected: Case) -> str | None:
    plugin, (pod,), table = world.plugin, world.pods, world.cluster.nodes
    state = plugin.pre_filter(pod) if hasattr(plugin, "pre_filter") else None
    for node, verdict in expected.items():
        found: Any = "Success"
        if state is not SKIP:
            rejections = plugin.filter_rows(state, pod, table, np.array([table.row_of[node]]))
            if rejections is not None and rejections.kinds[0]:
                found = rejections.words(int(rejections.kinds[0]))
        difference = status_difference(found, verdict)
        if difference is not None:
            return f"{node}: {difference}"
    return None


def _scores(world: World, expected: Case) -> str | None:
    found = _scores_of(world)
    wrong = next((node for node, score in expected.items() if found[node] != score), None)
    return None if wrong is None else f"{wrong}: {found[wrong]}, expected {expected[wrong]}"


def _best(world: World, node: str) -> str | None:
    found = _scores_of(world)
    return None if found[node] == max(found.values()) else f"{found}, expected {node}"


def _scores_of(world: World) -> dict[str, int]:
    plugin, (pod,), table = world.plugin, world.pods, world.cluster.nodes
    rows = np.flatnonzero(table.live[: table.size])
    state = plugin.pre_score(pod, table, rows) if hasattr(plugin, "pre_score") else None
    scores = plugin.score_rows(state, pod, table, rows).tolist()
    return {table.names[row]: score for row, score in zip(rows.tolist(), scores, strict=True)}


_CHECKS: dict[str, Callable[[World, Any], str | None]] = {"filter": _filter, "scores": _scores, "best": _best, **HOOKS}


def _end_to_end(case: Case) -> str | None:
    plugins = PluginCollection()
    _ = plugins[case["plugin"]]
    cls = plugins.plugin(case["plugin"])
    assert cls is not None
    with SchedulerHarness(_configuration(case), plugins=[cls]) as harness:
        for manifest in case["objects"]:
            _add(harness, object_of(manifest, cls))
        if "feed" in case:
            harness.run_for(0)  # the answer is about nodes that the scheduler knows
            harness.set_polled(case["plugin"], _feed(case, harness.clock.now()))
        for manifest in case["pods"]:
            _add(harness, convert(Pod, manifest))
        harness.run_for(_SECONDS)
        for pod, expected in case["expect"]["nodes"].items():
            namespace, _, name = pod.partition("/")
            found = harness.cluster.node_of(name, namespace) or None
            if found not in (expected if isinstance(expected, list) else [expected]):
                return f"{pod}: {found}, expected {expected}"
            text = case["expect"].get("message")
            notes = [
                event.note for event in harness.events.about(name, namespace) if event.reason == "FailedScheduling"
            ]
            if text is not None and not any(text in note for note in notes):
                return f"{pod}: {notes}, expected {text}"
        given = (object_of(manifest, cls) for manifest in case["objects"])
        evicted = {pod.key for pod in given if isinstance(pod, Pod) and harness.cluster.get(Pod, pod.key) is None}
        if "victims" in case["expect"] and evicted != set(case["expect"]["victims"]):
            return f"evicted {evicted}, expected {case['expect']['victims']}"
    return None


def _add(harness: SchedulerHarness, obj: Any) -> None:
    if isinstance(obj, Pod):
        # As an API server would set them.
        status = replace(obj.status, phase=obj.status.phase or "Pending")
        obj = replace(obj, spec=replace(obj.spec, schedulerName="default-scheduler"), status=status)
    harness.cluster.add(obj)


_POINTS: dict[str, dict[str, tuple[str, ...]]] = {
    "NodeResourceTopologyMatch": {"filter": (), "score": (), "reserve": ()},
    "Coscheduling": {"queueSort": ("PrioritySort",), "preFilter": (), "postFilter": (), "permit": (), "reserve": ()},
    "CapacityScheduling": {"preFilter": (), "postFilter": ("DefaultPreemption",), "reserve": ()},
}
"""The extension points of each plugin, with the plugins that it replaces there; without an entry, Score."""


def _configuration(case: Case) -> str:
    name, profile = case["plugin"], case["profile"]
    points: dict[str, Any] = {}
    for point, replaced in _POINTS.get(name, {"score": ()}).items():
        points[point] = {"enabled": [{"name": name}], "disabled": [{"name": other} for other in replaced]}
    if profile in ("only", "score-only"):
        cleared = ("preScore", "score") if profile == "score-only" else ("preFilter", "filter", "preScore", "score")
        for point in cleared:
            points.setdefault(point, {})["disabled"] = [{"name": "*"}]
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": points, "pluginConfig": [{"name": name, "args": case["args"]}]}],
        }
    )
