"""What is done to schedulers and API servers. Each story ends with nothing broken any more, and then looks."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

from chaos.observer import last_lease_writer
from chaos.planes import Scheduler
from chaos.proxy import AFTER, BEFORE
from chaos.world import ELECTION, Planes, Row, World, a_world

Story = Callable[[Row, Path, Planes, int], None]
"""Fills the row; the number says how much of it."""


def faulty_network(row: Row, folder: Path, planes: Planes, faults: int) -> None:
    """Requests and watches fail in all ways, and every connection is cut now and then, until that many faults."""
    with a_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        world.schedule()
        proxy = world.proxy("s1")
        while proxy.happened.total() < faults:
            proxy.likelihood = world.chance.choice((0.05, 0.2, 0.5))
            for _ in range(5):
                world.churn()
                time.sleep(0.1)
            proxy.cut_all()
        proxy.likelihood = 0.0
        world.settle()
        _note_death(world)


def api_server_restarts(row: Row, folder: Path, planes: Planes, restarts: int) -> None:
    """The API server is killed in the middle of writes, and comes back a moment later."""
    with a_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        world.schedule(proxied=False)
        for _ in range(restarts):
            world.churn(20)
            world.plane.kill()
            time.sleep(world.chance.random())
            world.plane.start()
            row.faults["API server killed"] += 1
        world.settle()
        _note_death(world)


STAGES = (
    (BEFORE, "POST", "/binding"),
    (AFTER, "POST", "/binding"),
    (BEFORE, "PATCH", "/status"),
    (AFTER, "PATCH", "/status"),
    (BEFORE, "POST", "/events"),
    (AFTER, "POST", "/events"),
    (BEFORE, "GET", "/pods"),
    (AFTER, "GET", "/nodes"),
    (BEFORE, "PUT", "/leases"),
    (AFTER, "PUT", "/leases"),
)
"""When a scheduler is killed: a request that ends so, before it is passed on or after the answer has come."""


def scheduler_kills(row: Row, folder: Path, planes: Planes, kills: int) -> None:
    """kill -9 at every stage; it is started again at once."""
    with a_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        proxy = world.proxy("s1")
        for number in range(kills):
            stage = STAGES[number % len(STAGES)]
            world.churn(5)
            elected = "leases" in stage[2]
            scheduler = world.schedule("s1", *(ELECTION if elected else ()))
            proxy.hook = _Killer(scheduler, stage, world.chance.randrange(1, 4))
            _until_dead(world, scheduler)
            row.faults[f"killed {stage[0]} {stage[1]} {stage[2]}"] += 1
        proxy.hook = None
        world.schedule()
        world.settle()


class _Killer:
    """Kills at the so-many-th request of a stage."""

    def __init__(self, scheduler: Scheduler, stage: tuple[str, str, str], number: int) -> None:
        self._scheduler = scheduler
        self._stage = stage
        self._left = number

    def __call__(self, when: str, method: str, path: str) -> None:
        if when == self._stage[0] and method == self._stage[1] and self._stage[2] in path:
            self._left -= 1
            if self._left == 0:
                self._scheduler.process.kill()


def _until_dead(world: World, scheduler: Scheduler) -> None:
    """A stage that never comes (nothing is left to be told) ends with a kill as well."""
    end = time.monotonic() + 5.0
    while scheduler.runs and time.monotonic() < end:
        world.churn(1)
        time.sleep(0.02)
    scheduler.kill()


def failovers(row: Row, folder: Path, planes: Planes, count: int) -> None:
    """Three schedulers; the leader is killed, stopped, frozen past its lease and woken, or cut off, under load."""
    with a_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        for name in ("s1", "s2", "s3"):
            world.schedule(name, *ELECTION)
        leader = _another_leader(world, "")
        for number in range(count):
            way = (_killed, _stopped, _frozen, _cut_off)[number % 4]
            world.churn(20)
            way(world, leader)
            row.faults[f"leader {way.__name__.strip('_').replace('_', ' ')}"] += 1
            after = _another_leader(world, leader)
            world.churn(20)
            _recovered(world, leader)
            leader = after
        world.settle()


def _leader(world: World) -> str:
    """Whoever wrote the lease last, unless it was released."""
    status, lease = world.api.insist("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    return last_lease_writer(world.plane.audit_log) if status == 200 and lease["spec"].get("holderIdentity") else ""


def _another_leader(world: World, before: str) -> str:
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        found = _leader(world)
        if found and found != before:
            return found
        time.sleep(0.05)
    world.row.other.append(f"nobody took over from {before or 'nobody'}")
    return before


def _killed(world: World, leader: str) -> None:
    world.schedulers[leader].kill()


def _stopped(world: World, leader: str) -> None:
    world.schedulers[leader].send(signal.SIGTERM)


def _frozen(world: World, leader: str) -> None:
    world.schedulers[leader].send(signal.SIGSTOP)


def _cut_off(world: World, leader: str) -> None:
    """It reaches nobody, but runs on."""
    world.proxy(leader).likelihood = 1.0
    world.proxy(leader).cut_all()


def _recovered(world: World, name: str) -> None:
    """A frozen one wakes and must not write; one that has ended is started again."""
    scheduler = world.schedulers[name]
    scheduler.send(signal.SIGCONT)
    if name in world.proxies:
        world.proxies[name].likelihood = 0.0
    end = time.monotonic() + 15.0
    while scheduler.runs and time.monotonic() < end:
        time.sleep(0.05)
    if scheduler.runs:
        world.row.other.append(f"{name} lost its lease and runs on")
        scheduler.kill()
    world.schedule(name, *ELECTION)


def flapping_nodes(row: Row, folder: Path, planes: Planes, flaps: int) -> None:
    """Nodes go and come back, are cordoned and tainted, while pods are bound."""
    with a_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        world.schedule()
        for _ in range(flaps):
            name = f"n{world.chance.randrange(20)}"
            world.churn(3)
            spec = world.chance.choice(
                ({"unschedulable": True}, {"taints": [{"key": "flaps", "effect": "NoSchedule"}]}, {})
            )
            world.api.call(
                "PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None, "taints": None} | spec}, _MERGE
            )
            row.faults["node changed"] += 1
        for number in range(20):
            body = {"spec": {"unschedulable": None, "taints": None}}
            world.api.call("PATCH", f"/api/v1/nodes/n{number}", body, _MERGE)
        world.settle()
        _note_death(world)


_MERGE = "application/merge-patch+json"


def _note_death(world: World) -> None:
    """A scheduler that runs alone survives everything that is not done to itself."""
    for name, scheduler in world.schedulers.items():
        if not scheduler.runs:
            world.row.other.append(f"{name} ended with {scheduler.process.returncode}: {scheduler.said()[-500:]}")


STORIES: dict[str, tuple[Story, int, int]] = {
    "faulty network": (faulty_network, 2000, 150),
    "API server restarts": (api_server_restarts, 100, 3),
    "scheduler kills": (scheduler_kills, 500, 10),
    "failovers": (failovers, 50, 4),
    "flapping nodes": (flapping_nodes, 2000, 100),
}
"""The story, how much of it `make chaos` runs, and how much CI."""
