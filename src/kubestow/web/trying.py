"""Dry runs on the cluster as a live scheduler knows it: what would help a pod, a pod that does not exist, another
configuration.

The objects are collected between two cycles; the rest happens in a thread, on a world of its own, one after the other,
so the scheduler goes on meanwhile, if slower.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec.structs import replace

from kubestow import config, objects
from kubestow.config import ConfigError
from kubestow.decisions.reading import GroupQuery, read_groups
from kubestow.decisions.recorder import Recorder
from kubestow.decisions.schema import SCHEDULED, Decision
from kubestow.explaining.dry_run import dry_run, take
from kubestow.explaining.explanation import Explanation, explained, explained_group
from kubestow.explaining.group_run import GroupRun
from kubestow.explaining.manifests import pods_in
from kubestow.explaining.world import ExplainError, Setup, World
from kubestow.framework.profile import ProfileError
from kubestow.http.errors import ApiError, bad_request
from kubestow.model.clock import Clock
from kubestow.model.meta import ObjectMeta
from kubestow.model.pod import Pod
from kubestow.model.workloads import PriorityClass
from kubestow.objects import ObjectsError
from kubestow.objects.sources import Source
from kubestow.plugin.loading import PluginCollection
from kubestow.web import comparing
from kubestow.web.decisions import told_with_nodes
from kubestow.wiring.core import Core

T = TypeVar("T")
MOST_WAITING = 8
MOST_COMPARED = 200
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


@dataclass(slots=True)
class Bench:
    """Where pods of one scheduler are tried."""

    core: Core
    recorder: Recorder
    clock: Clock
    setup: Callable[[], Setup]
    """What the scheduler is configured with now."""
    plugins: Callable[[], PluginCollection]
    """Those that a configuration may name."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _count: int = 0

    async def explain(self, namespace: str, name: str, against: str) -> dict[str, Any]:
        """A pod of the cluster, and what would help it; raises ApiError."""
        world = self._world(self.setup())

        def run() -> dict[str, Any]:
            here = world()
            pod = next((one for one in here.pods() if one.metadata.uid == name), None) or here.pod(namespace, name)
            if pod is None:
                raise ApiError(404, "NotFound", f"there is no pod {namespace}/{name}")
            on = pod.spec.nodeName
            notes = (f"it is on node {on} already; this is where it would go if it were scheduled now",) if on else ()
            return _told(explained(dry_run(here, here.take_out(pod)), against, notes))

        return await self._aside(run)

    async def explain_group(self, namespace: str, name: str) -> dict[str, Any]:
        """A pod group: what was decided, or would be, and what would help it; raises ApiError."""
        world = self._world(self.setup())
        recorded = read_groups(self.recorder.groups, GroupQuery(namespace, name, limit=1)).items

        def run() -> dict[str, Any]:
            here = world()
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
        """Pods in a text, each where it would go before the next is tried; raises ApiError."""
        world = self._world(self.setup())

        def run() -> dict[str, Any]:
            here = world()
            pods = pods_in(objects.manifests(Source("manifest", text)), here, namespace)
            for pod in pods:
                here.add_pending(pod)
            return {"items": list(_tried(here, pods))}

        return await self._aside(run)

    async def compare(self, text: str, count: int) -> dict[str, Any]:
        """The configuration in force with another, on pods that wait or were placed lately; raises ApiError."""
        setup = self.setup()
        try:
            other = config.load(text, setup.features, self.plugins())
        except ConfigError as error:
            raise bad_request("\n".join(map(str, error.problems))) from None
        worlds = [self._world(one) for one in (setup, setup._replace(configuration=other))]
        pods = list(self._compared(min(count, MOST_COMPARED)))

        def run() -> dict[str, Any]:
            a, b = (_decisions(world(), pods) for world in worlds)
            pairs = [(one, two) for one, two in zip(a, b, strict=True) if one is not None and two is not None]
            return comparing.told("in force", "given", pairs)

        return await self._aside(run)

    def _compared(self, most: int) -> Iterator[Pod]:
        """Pods that wait, then those that were placed last."""
        found = list(self.core.intake.pending_pods())[:most]
        yield from found
        uids = {pod.metadata.uid for pod in found}
        for record in self.recorder:
            if len(uids) >= most:
                return
            placed = self.core.cluster.pod(record.uid)
            if record.outcome == SCHEDULED and placed is not None and record.uid not in uids:
                uids.add(record.uid)
                yield placed.pod

    def _world(self, setup: Setup) -> Callable[[], World]:
        """What there is now, to be made into a world elsewhere."""
        cluster, now = self.core.cluster, self.clock.now()
        found: list[Any] = [node for node in cluster.nodes.nodes if node is not None]
        placed = {info.uid: info.pod for _, info in cluster.placed_pods()}
        pending = [pod for pod in self.core.intake.pending_pods() if pod.metadata.uid not in placed]
        for store in cluster.listers.stores():
            found += store
        found += [*placed.values(), *pending]

        def make() -> World:
            return World(setup, [*_priority_classes([*placed.values(), *pending]), *found], now)

        return make

    async def _aside(self, run: Callable[[], T]) -> T:
        """In a thread, when it is its turn."""
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
        run = dry_run(world, world.take_out(pod))
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


def _decisions(world: World, pods: Iterable[Pod]) -> Iterator[Decision | None]:
    """Of each pod by itself; None where no profile schedules it."""
    for pod in pods:
        try:
            yield dry_run(world, world.take_out(pod)).decision()
        except ExplainError:
            yield None
        world.add(pod)


def _priority_classes(pods: Iterable[Pod]) -> Iterator[PriorityClass]:
    """The scheduler is not told of them, but pods have them."""
    values = dict(_SYSTEM_CLASSES)
    for pod in pods:
        if pod.spec.priorityClassName and pod.spec.priority is not None:
            values[pod.spec.priorityClassName] = pod.spec.priority
    for name, value in values.items():
        yield PriorityClass(metadata=replace(ObjectMeta(), name=name), value=value)
