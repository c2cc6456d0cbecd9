"""Stories: faults injected into schedulers and API servers. Each story ends with a check without faults."""

import http.client
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.chaos.claims import devices_and_volumes
from support.chaos.observer import last_lease_writer
from support.chaos.planes import Embedded, Scheduler
from support.chaos.process_faults import killed_while_writing, little_memory
from support.chaos.proxy import AFTER, BEFORE
from support.chaos.world import ALONE, ELECTION, Planes, Row, World, running_world
from support.integration.cluster import PODS, pod
from support.polling import PATIENCE

Story = Callable[[Row, Path, Planes, int], None]
"""Runs a story and fills the row; the number is its length."""


def faulty_network(row: Row, folder: Path, planes: Planes, faults: int) -> None:
    """Fail requests and watches in all ways, and cut all connections at times, until `faults` have happened."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        world.schedule()
        proxy = world.proxy("s1")
        while proxy.happened.total() < faults:
            proxy.likelihood = world.rng.choice((0.05, 0.2, 0.5))
            for _ in range(5):
                world.churn()
                time.sleep(0.1)
            proxy.cut_all()
        proxy.likelihood = 0.0
        world.settle()
        _note_death(world)


def storms(row: Row, folder: Path, planes: Planes, count: int) -> None:
    """Reject all requests with 429, 500 or 503, or all watches with 410, for seconds at a time; then cut all watches.

    The scheduler must wait between its attempts, as the server would not recover otherwise.
    """
    seconds, most = 3.0, 50
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        scheduler = world.schedule()
        proxy = world.proxy("s1")
        world.settle()
        for number in range(count):
            status = (429, 500, 410, 503)[number % 4]
            world.churn(20)
            before = proxy.happened[f"storm of {status}"]
            proxy.storm = status
            proxy.cut_all()
            time.sleep(seconds)
            sent = proxy.happened[f"storm of {status}"] - before
            proxy.storm = 0
            if sent > most * seconds:
                row.other.append(f"{sent} requests in {seconds:g} seconds that were answered with {status}")
            world.churn(5)
            if not scheduler.is_running:
                break
        world.settle()
        _note_death(world)


def api_server_restarts(row: Row, folder: Path, planes: Planes, restarts: int) -> None:
    """Kill the API server every few seconds, and restart it a moment later."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        world.schedule(proxied=False)
        for _ in range(restarts):
            until = time.monotonic() + world.rng.uniform(0.0, 3.0)
            world.churn(20)
            while time.monotonic() < until:
                world.churn(2)
                time.sleep(0.1)
            world.plane.kill()
            time.sleep(world.rng.random())
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
"""Stages at which a scheduler is killed: a request with this suffix, before it is forwarded or after its response."""


def scheduler_kills(row: Row, folder: Path, planes: Planes, kills: int) -> None:
    """kill -9 at every stage, followed by a restart."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        proxy = world.proxy("s1")
        for number in range(kills):
            stage = STAGES[number % len(STAGES)]
            world.churn(5)
            if stage[1] == "PATCH":
                world.renew_impossible_pod()
            elected = "leases" in stage[2]
            scheduler = world.schedule("s1", *(ELECTION if elected else ()))
            proxy.hook = _Killer(scheduler, stage, 1 if stage[1] in ("GET", "PATCH") else world.rng.randrange(1, 4))
            _until_dead(world, scheduler)
            row.faults[f"killed {stage[0]} {stage[1]} {stage[2]}"] += 1
        proxy.hook = None
        world.schedule()
        world.settle()


class _Killer:
    """Kills the scheduler at the nth request of a stage."""

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
    """Wait until the scheduler is dead; if its stage never occurs (no events are left to send), kill it as well."""
    end = time.monotonic() + 5.0
    while scheduler.is_running and time.monotonic() < end:
        world.churn(1)
        time.sleep(0.1)
    scheduler.kill()


def failovers(row: Row, folder: Path, planes: Planes, count: int) -> None:
    """Three schedulers under load; the leader is killed, stopped, frozen past its lease, or disconnected."""
    with running_world(row, folder, planes) as world:
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
    """Return the last writer of the lease, "" if it was released."""
    status, lease = world.api.retry("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    return last_lease_writer(world.plane.audit_log) if status == 200 and lease["spec"].get("holderIdentity") else ""


def _another_leader(world: World, before: str) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = _leader(world)
        if found and found != before:
            return found
        time.sleep(0.05)
    world.row.other.append(f"no scheduler took over from {before or 'none'}")
    return before


def _killed(world: World, leader: str) -> None:
    world.schedulers[leader].kill()


def _stopped(world: World, leader: str) -> None:
    world.schedulers[leader].send(signal.SIGTERM)


def _frozen(world: World, leader: str) -> None:
    world.schedulers[leader].send(signal.SIGSTOP)


def _cut_off(world: World, leader: str) -> None:
    """Disconnect a scheduler that keeps running."""
    world.proxy(leader).unreachable = True
    world.proxy(leader).cut_all()


def _recovered(world: World, name: str) -> None:
    """Wake a frozen scheduler, which must not write; restart a terminated one."""
    scheduler = world.schedulers[name]
    scheduler.send(signal.SIGCONT)
    if name in world.proxies:
        world.proxies[name].unreachable = False
    end = time.monotonic() + PATIENCE
    while scheduler.is_running and time.monotonic() < end:
        time.sleep(0.05)
    if scheduler.is_running:
        world.row.other.append(f"{name} lost its lease and runs on")
        scheduler.kill()
    world.schedule(name, *ELECTION)


def flapping_nodes(row: Row, folder: Path, planes: Planes, flaps: int) -> None:
    """Nodes are deleted and added again, cordoned and tainted, while pods are bound."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        world.schedule()
        for _ in range(flaps):
            name = f"n{world.rng.randrange(20)}"
            world.churn(3)
            spec = world.rng.choice(
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


def few_descriptors(row: Row, folder: Path, planes: Planes, times: int) -> None:
    """The scheduler cannot open files, loses its connections, and later can open files again."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        scheduler = world.schedule()
        world.add_pods(20)
        world.settle()
        for _ in range(times):
            _, files = scheduler.memory_and_files()
            resource.prlimit(scheduler.process.pid, resource.RLIMIT_NOFILE, (files // 2, 4096))
            world.proxy("s1").cut_all()
            world.churn(20)
            time.sleep(2.0)
            resource.prlimit(scheduler.process.pid, resource.RLIMIT_NOFILE, (4096, 4096))
            row.faults["descriptors exhausted"] += 1
            world.settle()
        _note_death(world)


def full_disk(row: Row, folder: Path, _: Planes, times: int) -> None:
    """The API server's disk is full, then it is killed: acknowledged writes exist, others were rejected."""
    with running_world(row, folder, Embedded) as world:
        plane = world.plane
        assert isinstance(plane, Embedded)
        world.add_nodes(20)
        for number in range(times):
            plane.kill()
            plane.file_size = sum(file.stat().st_size for file in (folder / "data").glob("*")) + 40_000
            plane.start()
            kept = []
            for index in range(200):
                name = f"full-{number}-{index}"
                try:
                    status, _ = world.api.call("POST", PODS, pod(name, cpu="1m"))
                except (OSError, http.client.HTTPException):
                    continue  # the connection to the server that was killed
                if status == 201:
                    kept.append(name)
            row.faults["writes acknowledged"] += len(kept)
            row.faults["writes refused"] += 200 - len(kept)
            if not 0 < len(kept) < 200:
                row.other.append(f"{len(kept)} of 200 writes were acknowledged on a disk that fills up")
            row.faults["disk full"] += 1
            plane.kill()
            plane.file_size = 0
            plane.start()
            there = world.pods()
            row.lost += [f"{name} was acknowledged and is gone" for name in kept if name not in there]
            for name in there:
                world.api.retry("DELETE", f"{PODS}/{name}")
        world.schedule(proxied=False)
        world.add_pods(20)
        world.settle()


def large_and_absurd(row: Row, folder: Path, planes: Planes, count: int) -> None:
    """Objects of a megabyte, with thousands of labels and terms, and extreme amounts; valid pods are placed."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.schedule()
        for number in range(count):
            kind, body = world.rng.choice(sorted(_ABSURD.items()))
            absurd = pod(f"absurd-{number}", cpu="1m") | {"spec": body["spec"]}
            absurd["metadata"] = {"name": f"absurd-{number}", "namespace": "default"} | body.get("metadata", {})
            status, _ = world.api.retry("POST", PODS, absurd)
            row.faults[f"{kind}: {'taken' if status == 201 else 'refused'}"] += 1
            world.churn(2)
        world.settle()
        _note_death(world)


def _absurd(**spec: Any) -> dict[str, Any]:
    return {"spec": pod("x", cpu="1m")["spec"] | spec}


def _terms(count: int) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"no": "body"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * count}}


def _container(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": "1m"}}} | fields]


_ABSURD: dict[str, dict[str, Any]] = {
    "a megabyte": _absurd(containers=_container(env=[{"name": "A", "value": "x" * 1_000_000}])),
    "2,000 labels": _absurd() | {"metadata": {"labels": {f"l{number}": "x" for number in range(2000)}}},
    "1,000 terms": _absurd(affinity=_terms(1000)),
    "the largest amounts": _absurd(
        containers=_container(resources={"requests": {"memory": "9223372036854775807", "cpu": "9223372036854775"}})
    ),
    "amounts beyond": _absurd(containers=_container(resources={"requests": {"memory": "99999999999E"}})),
    "500 tolerations": _absurd(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(500)]),
    "a long selector": _absurd(nodeSelector={f"k{number}": "v" for number in range(1000)}),
    "a thousand ports": _absurd(
        containers=_container(ports=[{"containerPort": n, "hostPort": n} for n in range(1, 1001)])
    ),
}


def many_pods(row: Row, folder: Path, planes: Planes, count: int) -> None:
    """All pods exist before the scheduler starts."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(max(20, count // 20))
        world.add_impossible_pod()
        world.add_pods(count)
        row.faults["pods at once"] += row.pods
        world.schedule(proxied=False)
        # The event queue is limited and drops new events; the checked ones are sent after the crowd.
        end = time.monotonic() + 600.0
        while world.observer.bound < row.pods - 1 and time.monotonic() < end:
            time.sleep(0.2)
        time.sleep(min(60.0, count / 1000))
        world.settle(600.0)
        _note_death(world)


def soak(row: Row, folder: Path, planes: Planes, seconds: int) -> None:
    """Pods are added and deleted, connections are cut at times; memory and open files do not grow."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        # Decision records may fill 128 MiB, which takes longer than this.
        scheduler = world.schedule("s1", *ALONE, "--decision-records-bytes=4Mi")
        for _ in range(5):
            world.add_pods(100)
            world.settle()
            world.delete_pods(500)
        began, early = time.monotonic(), scheduler.memory_and_files()
        while (passed := time.monotonic() - began) < seconds:
            world.churn(5)
            time.sleep(0.5)
            if world.rng.random() < 0.05:
                world.proxy("s1").cut_all()
            if passed < seconds / 3:
                memory, files = scheduler.memory_and_files()
                # Fewer are open just after connections were cut.
                early = memory, max(files, early[1])
        world.settle()
        late = scheduler.memory_and_files()
        row.faults["seconds"] += seconds
        row.faults["KiB at a third"], row.faults["KiB at the end"] = early[0], late[0]
        if late[0] > early[0] * 1.15 + 8_000:
            row.other.append(f"memory grew from {early[0]} to {late[0]} KiB")
        if late[1] > early[1] + 10:
            row.other.append(f"open files grew from {early[1]} to {late[1]}")
        _note_death(world)


def _note_death(world: World) -> None:
    """Note a scheduler that died without being killed."""
    for name, scheduler in world.schedulers.items():
        if not scheduler.is_running:
            world.row.other.append(f"{name} ended with {scheduler.process.returncode}: {scheduler.output()[-500:]}")


STORIES: dict[str, tuple[Story, int, int]] = {
    "faulty network": (faulty_network, 2000, 150),
    "storms": (storms, 100, 4),
    "API server restarts": (api_server_restarts, 200, 3),
    "killed while writing": (killed_while_writing, 20, 2),
    "scheduler kills": (scheduler_kills, 500, 10),
    "failovers": (failovers, 50, 4),
    "flapping nodes": (flapping_nodes, 2000, 100),
    "devices and volumes": (devices_and_volumes, 400, 20),
    "little memory": (little_memory, 20, 2),
    "few descriptors": (few_descriptors, 20, 1),
    "full disk": (full_disk, 20, 1),
    "large and absurd": (large_and_absurd, 300, 16),
    "many pods": (many_pods, 100_000, 300),
    "soak": (soak, 1800, 5),
}
EMBEDDED_ONLY = {"full disk", "killed while writing"}
"""The story, its length in `make chaos`, and its length in CI."""
