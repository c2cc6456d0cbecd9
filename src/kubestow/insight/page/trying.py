"""Dry runs for the page: changes that would help a pod, new pods, another configuration.

The scene of a live scheduler is taken between two cycles. Dry runs execute in a thread, each in its own world, one at a
time: scheduling continues meanwhile, but slower.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from kubestow import config
from kubestow.api import files as objects
from kubestow.api.files import ObjectsError
from kubestow.api.files.sources import Source
from kubestow.api.pod import Pod
from kubestow.config import ConfigError
from kubestow.insight.decisions.reading import Query
from kubestow.insight.decisions.schema import SCHEDULED, Decision, GroupDecision
from kubestow.insight.explain.dry_run import DryRun, assume_and_reserve
from kubestow.insight.explain.explanation import Explanation, cause_trees, explain_group_run, explained
from kubestow.insight.explain.group_run import GroupRun
from kubestow.insight.explain.manifests import read_pods
from kubestow.insight.explain.overview import pending_overview
from kubestow.insight.explain.owners import Owner
from kubestow.insight.explain.world import ExplainError, World
from kubestow.insight.page import comparing
from kubestow.insight.page.decisions import Decisions, with_matrix
from kubestow.insight.page.scenes import Scene, pods_of
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.server.http.errors import ApiError, bad_request

T = TypeVar("T")
MOST_WAITING = 8
MOST_COMPARED = 200
_RECENT = 2_000
"""Number of the newest decisions that are searched for scheduled pods."""


@dataclass(slots=True)
class DryRuns:
    """Executes dry runs for one scheduler."""

    scene: Callable[[], Scene]
    decisions: Decisions
    plugins: Callable[[], PluginCollection] = PluginCollection
    """Returns the plugins that a configuration may name."""
    recorded_group: Callable[[Query], Sequence[GroupDecision]] = lambda _: ()
    """Returns the recorded decisions about a pod group."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _count: int = 0

    async def explain(self, namespace: str, name: str, against: str) -> dict[str, Any]:
        """Explain a dry run of an existing pod. Raises ApiError."""
        scene = self.scene()

        def run() -> dict[str, Any]:
            world = scene.world()
            pod = next((one for one in world.pods() if one.metadata.uid == name), None) or world.pod(namespace, name)
            if pod is None:
                raise ApiError(404, "NotFound", f"there is no pod {namespace}/{name}")
            node = pod.spec.nodeName
            notes = (f"the pod is on node {node}; this dry run shows where it would be scheduled now",) if node else ()
            return _to_dict(explained(DryRun(world, world.remove_for_scheduling(pod)), against, notes))

        return await self._in_thread(run)

    async def pending(self, namespace: str, owner: str) -> dict[str, Any]:
        """Explain pending pods by owner and cause, of a namespace or an owner unless it is empty. Raises ApiError."""
        scene = self.scene()

        def run() -> dict[str, Any]:
            world = scene.world()
            pods = (pod for pod in world.pending.values() if namespace in ("", pod.metadata.namespace))
            listers = world.cluster.listers
            return pending_overview(world, [one for one in pods if owner in ("", Owner.of(one, listers).text)]).tree()

        return await self._in_thread(run)

    async def explain_group(self, namespace: str, name: str) -> dict[str, Any]:
        """Explain the recorded decision about a pod group, or a dry run. Raises ApiError."""
        scene = self.scene()
        recorded = self.recorded_group(Query(namespace, name, limit=1))

        def run() -> dict[str, Any]:
            world = scene.world()
            group = world.cluster.listers.pod_groups.get(f"{namespace}/{name}")
            if group is None:
                raise ApiError(404, "NotFound", f"there is no pod group {namespace}/{name}")
            found = explain_group_run(GroupRun(world, group))
            return {
                "source": "scheduler" if recorded else found.source,
                "decision": recorded[0] if recorded else found.decision,
                "causes": cause_trees(found.causes),
                "wouldFitIf": found.would_fit_if,
                "notes": found.notes,
                "stuck": found.is_stuck,
            }

        return await self._in_thread(run)

    async def try_pods(self, text: str, namespace: str) -> dict[str, Any]:
        """Run the pods in a manifest, each after the previous ones were placed. Raises ApiError."""
        scene = self.scene()

        def run() -> dict[str, Any]:
            world = scene.world()
            pods = read_pods(objects.manifests(Source("manifest", text)), world, namespace)
            for pod in pods:
                world.remove_placed(pod)
                world.add_pending(pod)
            return {"items": list(_tried(world, pods))}

        return await self._in_thread(run)

    async def compare(self, text: str, count: int) -> dict[str, Any]:
        """Compare the current configuration with another one, for pending and recent pods. Raises ApiError."""
        scene = self.scene()
        try:
            other = config.load(text, scene.setup.features, self.plugins())
        except ConfigError as error:
            raise bad_request("\n".join(map(str, error.problems))) from None
        given = scene._replace(setup=scene.setup._replace(configuration=other))
        recent = [one.pod for one in islice(self.decisions.find(Query(outcome=SCHEDULED)), _RECENT)]

        def run() -> dict[str, Any]:
            pods = list(islice(_to_compare(scene.objects, recent), count))
            a, b = (_decisions(one.world(), pods) for one in (scene, given))
            pairs = [(one, two) for one, two in zip(a, b, strict=True) if one is not None and two is not None]
            moved = [(one, two) for one, two in pairs if one.chosen != two.chosen]
            return comparing.comparison("current", "new", len(pairs), moved)

        return await self._in_thread(run)

    async def _in_thread(self, run: Callable[[], T]) -> T:
        """Call a function in a thread, after earlier dry runs. Raises ApiError."""
        if self._count >= MOST_WAITING:
            raise ApiError(429, "TooManyRequests", f"{MOST_WAITING} dry runs are waiting already; try again later")
        self._count += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(run)
        except (ExplainError, ObjectsError, ProfileError) as error:
            raise bad_request(str(error)) from None
        finally:
            self._count -= 1


def _tried(world: World, pods: Iterable[Pod]) -> Iterator[dict[str, Any]]:
    for pod in pods:
        run = DryRun(world, world.remove_for_scheduling(pod))
        missing = pod.spec.priorityClassName if pod.spec.priorityClassName not in world.priority_classes else ""
        notes = (f"no pod has priority class {missing}, so its value is unknown; 0 is assumed",) if missing else ()
        yield _to_dict(explained(run, notes=notes))
        assume_and_reserve(run)


def _to_dict(found: Explanation) -> dict[str, Any]:
    return with_matrix(found.decision) | {
        "source": found.source,
        "causes": cause_trees(found.causes),
        "wouldFitIf": found.would_fit_if,
        "together": found.together,
        "against": found.against,
        "notes": found.notes,
        "stuck": found.is_stuck,
    }


def _to_compare(objects: Iterable[Any], recent: Iterable[str]) -> Iterator[Pod]:
    """Yield the pending pods, then the pods with a node in the order of `recent` names."""
    placed = {}
    for pod in pods_of(objects):
        if pod.spec.nodeName:
            placed[pod.key] = pod
        else:
            yield pod
    yield from (placed.pop(key) for key in recent if key in placed)


def _decisions(world: World, pods: Iterable[Pod]) -> Iterator[Decision | None]:
    """Yield the decision about each pod by itself; None if no profile schedules it."""
    for pod in pods:
        try:
            yield DryRun(world, world.remove_for_scheduling(pod)).decision()
        except ExplainError:
            yield None
        world.add(pod)
