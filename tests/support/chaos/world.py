"""A control plane with observer, schedulers, proxies, and a load of pods that always fits."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from support.chaos.observer import Observer, reason_for_waiting
from support.chaos.planes import Api, Plane, Scheduler, kubeconfig
from support.chaos.proxy import Proxy
from support.integration.cluster import PODS, node, pod

NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"
TOO_BIG = "too-big"
SETTLE = 240.0
"""Seconds after the last fault until every pod is bound, or pending with a true reason; a forgotten pod is retried
after 300."""
ELECTION = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=300ms",
)
SKEWS = {"s1": 0.0, "s2": 300.0, "s3": -300.0}
"""Seconds by which the schedulers' clocks are wrong."""
ALONE = ("--leader-elect=false",)
UNLIMITED = ("--kube-api-qps=1000", "--kube-api-burst=1000")


@dataclass
class Row:
    """The faults and results of a story."""

    story: str
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    pods: int = 0
    bound: int = 0
    lost: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    overcommitted: list[str] = field(default_factory=list)
    fencing: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    settled: float = 0.0
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        return [*self.lost, *self.double, *self.overcommitted, *self.fencing, *self.other]


class Event(NamedTuple):
    """An event about a pod."""

    pod: str
    uid: str
    reason: str
    message: str


class World:
    """The environment of a story."""

    def __init__(self, plane: Plane, folder: Path, seed: int, row: Row) -> None:
        self.plane = plane
        self.folder = folder
        self.rng = random.Random(seed)
        self.row = row
        self.api = Api(plane)
        self.observer = Observer(plane)
        self.proxies: dict[str, Proxy] = {}
        self.schedulers: dict[str, Scheduler] = {}
        self._room = 0
        self._taken = 0
        self._pod_sizes: dict[str, int] = {}
        """Milli CPUs of the pods to be bound, by name."""
        self._probes = 0

    # Schedulers

    def proxy(self, name: str) -> Proxy:
        if name not in self.proxies:
            self.proxies[name] = Proxy(self.plane, self.row.seed).start()
        return self.proxies[name]

    def schedule(self, name: str = "s1", *flags: str, proxied: bool = True) -> Scheduler:
        """Start or restart a scheduler."""
        server = self.proxy(name).url if proxied else f"https://127.0.0.1:{self.plane.port}"
        config = kubeconfig(self.plane, name, server, self.folder / f"{name}.kubeconfig")
        chosen = (*(flags or ALONE), *UNLIMITED)
        self.schedulers[name] = Scheduler(self.folder, name, config, *chosen, skew=SKEWS[name])
        return self.schedulers[name]

    # Load

    def add_nodes(self, count: int, cpus: int = 4) -> None:
        for number in range(count):
            self.create(NODES, node(f"n{number}", cpu=str(cpus)))
        self._room = count * cpus * 1000

    def add_pods(self, count: int, prefix: str = "p", **spec: Any) -> list[str]:
        """Add up to `count` pods of random sizes that fit well."""
        names = []
        for _ in range(count):
            milli = self.rng.choice((50, 100, 150))
            if self._taken + milli > self._room * 0.7:
                break
            names.append(self.add_pod(f"{prefix}{self.row.pods}", milli, **spec))
        return names

    def add_pod(self, name: str, milli: int = 10, **spec: Any) -> str:
        self.row.pods += 1
        self.create(PODS, pod(name, cpu=f"{milli}m", **spec))
        self._pod_sizes[name] = milli
        self._taken += milli
        return name

    def add_impossible_pod(self) -> None:
        self.create(PODS, pod(TOO_BIG, cpu="64"))
        self.row.pods += 1

    def renew_impossible_pod(self) -> None:
        """Replace the impossible pod by one without conditions and events."""
        self.api.retry("DELETE", f"{PODS}/{TOO_BIG}")
        self.add_impossible_pod()

    def delete_pods(self, count: int) -> None:
        for name in self.rng.sample(sorted(self._pod_sizes), min(count, len(self._pod_sizes))):
            self.delete_pod(name)

    def delete_pod(self, name: str) -> None:
        status, answer = self.api.retry("DELETE", f"{PODS}/{name}")
        if status not in (200, 202, 404):
            self.row.other.append(f"deleting {name}: {status} {answer}")
        self._taken -= self._pod_sizes.pop(name)

    def churn(self, count: int = 10) -> None:
        """Add pods, and delete as many when the cluster is nearly full."""
        if not self.add_pods(count):
            self.delete_pods(3 * count)

    def create(self, path: str, body: dict[str, Any]) -> None:
        status, answer = self.api.retry("POST", path, body)
        # The server may have been killed after it stored the object.
        if status not in (200, 201, 409):
            self.row.other.append(f"creating {body['metadata']['name']}: {status} {answer}")

    # Final checks

    def pods(self) -> dict[str, dict[str, Any]]:
        _, answer = self.api.retry("GET", PODS)
        return {item["metadata"]["name"]: item for item in answer["items"]}

    def settle(self, seconds: float = SETTLE, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait after the last fault until the state is as expected, and record the differences."""
        started = time.monotonic()
        self._probes += 1
        probe = self.add_pod(f"probe{self._probes}")
        while True:
            meanwhile()
            checked = time.monotonic()
            open_points = self._open_points(probe)
            now = time.monotonic()
            if not open_points or now > started + seconds:
                break
            time.sleep(max(0.1, 2 * (now - checked)))
        self.row.settled = now - started
        self.row.lost += open_points

    def _open_points(self, probe: str) -> list[str]:
        pods, events = self.pods(), self._events()
        missing = [f"{name} is gone" for name in self._pod_sizes if name not in pods]
        waiting = [
            f"{name} waits: {reason_for_waiting(pods[name]) or 'no reason'}"
            for name in self._pod_sizes
            if name in pods and not pods[name]["spec"].get("nodeName")
        ]
        if TOO_BIG in pods and "Insufficient cpu" not in reason_for_waiting(pods[TOO_BIG]):
            waiting.append(f"{TOO_BIG} waits without its reason")
        if TOO_BIG in pods and not any(
            event.pod == TOO_BIG and "Insufficient cpu" in event.message for event in events
        ):
            waiting.append(f"no event says why {TOO_BIG} waits")
        if not any(event.pod == probe and event.reason == "Scheduled" for event in events):
            waiting.append(f"no event says where {probe} went")
        return missing + waiting + _contradictions(pods, events)

    def _events(self) -> list[Event]:
        _, answer = self.api.retry("GET", EVENTS)
        return [
            Event(item["involvedObject"]["name"], item["involvedObject"]["uid"], item["reason"], item["message"])
            for item in answer["items"]
        ]

    def close(self) -> None:
        for scheduler in self.schedulers.values():
            scheduler.kill()
        observed = self.observer.stop()
        self.row.bound = self.observer.bound
        self.row.double += observed.double
        self.row.overcommitted += observed.overcommitted
        self.row.fencing += observed.fencing
        for proxy in self.proxies.values():
            self.row.faults.update(proxy.happened)
            proxy.close()
        self.api.close()
        self.plane.close()


def _contradictions(pods: dict[str, dict[str, Any]], events: list[Event]) -> list[str]:
    """Return conditions and events that contradict the state of their pods."""
    problems = [
        f"{name} is bound, and its condition says otherwise: {reason_for_waiting(found)}"
        for name, found in pods.items()
        if found["spec"].get("nodeName") and reason_for_waiting(found)
    ]
    for event in events:
        found = pods.get(event.pod)
        if found is not None and found["metadata"]["uid"] == event.uid and event.reason == "Scheduled":
            node = found["spec"].get("nodeName", "nowhere")
            if event.message.split()[-1] != node:
                problems.append(f"{event.pod} is on {node}, and an event says: {event.message}")
    return problems


Planes = Callable[[Path], Plane]


@contextmanager
def running_world(row: Row, folder: Path, planes: Planes) -> Iterator[World]:
    """Yield a started plane with an observer; on exit, terminate everything and record the violations."""
    started = time.monotonic()
    folder.mkdir(parents=True)
    plane = planes(folder)
    plane.start()
    world = World(plane, folder, row.seed, row)
    world.observer.start()
    try:
        yield world
    finally:
        world.close()
        row.seconds = time.monotonic() - started
