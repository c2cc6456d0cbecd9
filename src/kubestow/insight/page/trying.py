"""Dry runs on a scene: what would help a pod, a pod that does not exist, another configuration.

The scene of a live scheduler is made between two cycles. Dry runs take place in a thread, in a world of their own, one
at a time: scheduling goes on meanwhile, but slower.
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
from kubestow.insight.explain.dry_run import DryRun, take
from kubestow.insight.explain.explanation import Explanation, explained, explained_group
from kubestow.insight.explain.group_run import GroupRun
from kubestow.insight.explain.manifests import pods_in
from kubestow.insight.explain.world import ExplainError, World
from kubestow.insight.page import comparing
from kubestow.insight.page.decisions import Decisions, told_with_nodes
from kubestow.insight.page.scenes import Scene, pods_of
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.server.http.errors import ApiError, bad_request

T = TypeVar("T")
MOST_WAITING = 8
MOST_COMPARED = 200
_RECENT = 2_000
"""Number of decisions that are looked through for pods that were placed."""


@dataclass(slots=True)
class Bench:
    """Where pods of one scheduler are tried."""

    scene: Callable[[], Scene]
    decisions: Decisions
    plugins: Callable[[], PluginCollection] = PluginCollection
    """Returns the plugins that a configuration may name."""
    recorded_group: Callable[[Query], Sequence[GroupDecision]] = lambda _: ()
    """Returns what was decided about a pod group."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _count: int = 0

    async def explain(self, namespace: str, name: str, against: str) -> dict[str, Any]:
        """Try a pod of the cluster, and find what would help it; raises ApiError."""
        scene = self.scene()

        def run() -> dict[str, Any]:
            here = scene.world()
            pod = next((one for one in here.pods() if one.metadata.uid == name), None) or here.pod(namespace, name)
            if pod is None:
                raise ApiError(404, "NotFound", f"there is no pod {namespace}/{name}")
            on = pod.spec.nodeName
            notes = (f"it is on node {on} already; this is where it would go if it were scheduled now",) if on else ()
            return _told(explained(DryRun(here, here.take_out(pod)), against, notes))

        return await self._aside(run)

    async def explain_group(self, namespace: str, name: str) -> dict[str, Any]:
        """Return what was or would be decided about a pod group, and what would help it; raises ApiError."""
        scene = self.scene()
        recorded = self.recorded_group(Query(namespace, name, limit=1))

        def run() -> dict[str, Any]:
            here = scene.world()
            group = here.cluster.listers.pod_groups.get(f"{namespace}/{name}")
            if group is None:
                raise ApiError(404, "NotFound", f"there is no pod group {namespace}/{name}")
            found = explained_group(GroupRun(here, group))
            return {
                "source": "scheduler" if recorded else found.source,
                "decision": recorded[0] if recorded else found.decision,
                "wouldFitIf": found.would_fit_if,
                "notes": found.notes,
                "stuck": found.is_stuck,
            }

        return await self._aside(run)

    async def try_pods(self, text: str, namespace: str) -> dict[str, Any]:
        """Try the pods in a text, each with those before it in their places; raises ApiError."""
        scene = self.scene()

        def run() -> dict[str, Any]:
            here = scene.world()
            pods = pods_in(objects.manifests(Source("manifest", text)), here, namespace)
            for pod in pods:
                here.make_way(pod)
                here.add_pending(pod)
            return {"items": list(_tried(here, pods))}

        return await self._aside(run)

    async def compare(self, text: str, count: int) -> dict[str, Any]:
        """Compare the configuration in use with another one, on pods that wait or were placed last; raises ApiError."""
        scene = self.scene()
        try:
            other = config.load(text, scene.setup.features, self.plugins())
        except ConfigError as error:
            raise bad_request("\n".join(map(str, error.problems))) from None
        given = scene._replace(setup=scene.setup._replace(configuration=other))
        recent = [one.pod for one in islice(self.decisions.find(Query(outcome=SCHEDULED)), _RECENT)]

        def run() -> dict[str, Any]:
            pods = list(islice(_worth_comparing(scene.objects, recent), count))
            a, b = (_decisions(one.world(), pods) for one in (scene, given))
            pairs = [(one, two) for one, two in zip(a, b, strict=True) if one is not None and two is not None]
            moved = [(one, two) for one, two in pairs if one.chosen != two.chosen]
            return comparing.told("in force", "given", len(pairs), moved)

        return await self._aside(run)

    async def _aside(self, run: Callable[[], T]) -> T:
        """Run in a thread, after the dry runs before; raises ApiError."""
        if self._count >= MOST_WAITING:
            raise ApiError(429, "TooManyRequests", f"{MOST_WAITING} dry runs wait already; try again soon")
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
        run = DryRun(world, world.take_out(pod))
        missing = pod.spec.priorityClassName if pod.spec.priorityClassName not in world.priority_classes else ""
        notes = (f"no pod has priority class {missing}, so its value is not known here; 0 is taken",) if missing else ()
        yield _told(explained(run, notes=notes))
        take(run)


def _told(found: Explanation) -> dict[str, Any]:
    return told_with_nodes(found.decision) | {
        "source": found.source,
        "wouldFitIf": found.would_fit_if,
        "against": found.against,
        "notes": found.notes,
        "stuck": found.is_stuck,
    }


def _worth_comparing(objects: Iterable[Any], recent: Iterable[str]) -> Iterator[Pod]:
    """Return pods that wait, then those that were placed last."""
    placed = {}
    for pod in pods_of(objects):
        if pod.spec.nodeName:
            placed[pod.key] = pod
        else:
            yield pod
    yield from (placed.pop(key) for key in recent if key in placed)


def _decisions(world: World, pods: Iterable[Pod]) -> Iterator[Decision | None]:
    """Decide about each pod by itself; None if no profile schedules it."""
    for pod in pods:
        try:
            yield DryRun(world, world.take_out(pod)).decision()
        except ExplainError:
            yield None
        world.add(pod)
