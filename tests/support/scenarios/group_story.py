"""Random sequences of events with pod groups."""

import random
from typing import Any

from kubestow.api.pod import Pod
from kubestow.testing import SchedulerHarness, make_composite_pod_group, make_node, make_pod, make_pod_group
from support.scenarios.gangs import GATES, features


class Story:
    """Groups and single pods are added to, and removed from, a few nodes; all gangs are checked after every event."""

    def __init__(self, seed: int, gates: tuple[str, ...] = GATES, **options: Any) -> None:
        self.rng = random.Random(seed)
        self.harness = SchedulerHarness(features=features(*gates), latency=self.rng.choice((0.0, 0.01)), **options)
        self.cluster = self.harness.cluster
        self.more = [self.add_tree] * 2 if "CompositePodGroup" in gates else []
        self.names = 0
        for _ in range(self.rng.randint(2, 6)):
            self.add_node()

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def add_node(self) -> None:
        labels = {"rack": f"r{self.rng.randrange(2)}"} if self.rng.random() < 0.9 else {}
        self.cluster.add(make_node(self.name("n"), cpu=str(self.rng.choice((2, 4))), labels=labels))

    def add_group(self) -> None:
        self._add(self._group(8, self.rng.choice((0, 0, 10))))

    def add_tree(self) -> None:
        """Add composite pod groups on up to three levels, above up to five pod groups."""
        rng, priority, parents, made = self.rng, self.rng.choice((0, 0, 10)), list[str](), list[Any]()
        for _ in range(rng.randint(1, 3)):
            name, options = self.name("t"), {"priority": priority, "disruption_mode": rng.choice(("single", "all"))}
            parent = rng.choice(parents) if parents else None
            topology = "rack" if rng.random() < 0.3 else ""
            least = rng.choice((None, 1, 2))
            made.append(make_composite_pod_group(name, least, parent=parent, topology_key=topology, **options))
            parents.append(name)
        for _ in range(rng.randint(1, 5)):
            made += self._group(4, priority, rng.choice(parents))
        self._add(made)

    def _add(self, made: list[Any]) -> None:
        self.rng.shuffle(made)
        for obj in made:
            self.cluster.add(obj)

    def _group(self, most: int, priority: int, parent: str | None = None) -> list[Any]:
        rng, name = self.rng, self.name("g")
        pods = rng.randint(1, most)
        topology = "rack" if rng.random() < 0.3 else ""
        least = None if rng.random() < 0.2 else rng.randint(1, pods)
        mode = rng.choice(("single", "all"))
        options: dict[str, Any] = {"topology_key": topology, "priority": priority, "disruption_mode": mode}
        made: list[Any] = [make_pod_group(name, least, parent=parent, **options)]
        sizes = [rng.choice(("500m", "1", "2"))] * pods if rng.random() < 0.7 else None
        for number in range(pods):
            cpu = sizes[number] if sizes else rng.choice(("500m", "1", "2"))
            made.append(make_pod(f"{name}-{number}", cpu=cpu, group=name, priority=priority, grace_seconds=0))
        return made

    def add_pod(self) -> None:
        self.cluster.add(make_pod(self.name("p"), cpu="1", priority=self.rng.choice((0, 5)), grace_seconds=0))

    def delete_pod(self) -> None:
        pods = self.cluster.all(Pod)
        if pods:
            self.cluster.delete(self.rng.choice(pods), grace_seconds=0)

    def step(self) -> None:
        events = (self.add_group, self.add_group, self.add_pod, self.add_node, self.delete_pod, self.rest, *self.more)
        self.rng.choice(events)()
        self.harness.run_for(self.rng.choice((0.0, 0.005, 0.5)))

    def rest(self) -> None:
        self.harness.run_for(self.rng.choice((1.0, 12.0)))
