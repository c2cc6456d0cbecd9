"""Simulation and live scheduler bind the same pods to the same nodes.

The live scheduler watches the embedded API server over HTTP; the simulation has it in memory. Both get the same objects
in the same order, step by step; both have the same seed, and a clock that stands still except for the time between
steps.
"""

import asyncio
import random
from typing import Any

import pytest

from kubestow.simulator import Latencies, Simulation
from support.client.virtualtime import run
from support.integration.cluster import Cluster, node, pod, priority_class, running_cluster, running_scheduler

ZONE = "topology.kubernetes.io/zone"
STEP_SECONDS = 7.3
"""Not a sum of backoffs, so that no retry coincides with a step."""
Object = dict[str, Any]
Step = tuple[str, Object]


def _shape(rng: random.Random) -> Object:
    """Return random scheduling constraints of a pod."""
    app = {"app": f"a{rng.randrange(3)}"}
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": app}}
    shapes: list[Object] = [
        {},
        {},
        {"nodeSelector": {"disk": "ssd"}},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"topologySpreadConstraints": [term | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            term | {"topologyKey": "kubernetes.io/hostname"}]}}},
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "podAffinityTerm": term}]}}},
        {"priorityClassName": "high"},
    ]  # fmt: skip
    return rng.choice(shapes) | {"labels": app}


def _pod(number: int, rng: random.Random) -> Object:
    shape = _shape(rng)
    made = pod(f"p{number:02}", rng.choice(["250m", "500m", "1", "1700m"]))
    made["metadata"]["labels"] = shape.pop("labels")
    made["spec"] |= shape
    return made


def _node(name: str, number: int, rng: random.Random) -> Object:
    made = node(name, rng.choice(["2", "4"]), **{ZONE: f"z{number % 3}", "disk": rng.choice(["ssd", "hdd"])})
    if number % 4 == 3:
        made["spec"] = {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}
    return made


def _scenario(seed: int) -> tuple[list[Object], list[Step]]:
    """Return the objects that exist before the scheduler starts, and the steps that follow."""
    rng = random.Random(seed)
    there = [priority_class("high", 100), *(_node(f"n{number}", number, rng) for number in range(6))]
    there += [_pod(number, rng) for number in range(8)]
    steps: list[Step] = []
    for number in range(8, 34):
        what = rng.choice(["add", "add", "add", "delete", "node"])
        if what == "delete":
            steps.append(("delete", {"name": f"p{rng.randrange(number):02}"}))
        steps.append(("add", _node(f"m{number}", number, rng) if what == "node" else _pod(number, rng)))
    return there, steps


async def _live(there: list[Object], steps: list[Step]) -> dict[str, str]:
    async with running_cluster() as cluster:
        await cluster.add(*there)
        async with running_scheduler(cluster):
            await asyncio.sleep(STEP_SECONDS)
            for step in steps:
                await _take(cluster, *step)
                await asyncio.sleep(STEP_SECONDS)
            return await cluster.nodes_of_pods()


async def _take(cluster: Cluster, what: str, obj: Object) -> None:
    if what == "add":
        await cluster.add(obj)
    elif obj["name"] in await cluster.pods():
        await cluster.delete(f"/api/v1/namespaces/default/pods/{obj['name']}")


def _simulated(there: list[Object], steps: list[Step]) -> dict[str, str]:
    settings: Object = {"controllers": "none", "kubelets": False, "latencies": Latencies(0.0, 0.0), "checked": True}
    with Simulation(seed=1, **settings) as simulation:
        simulation.add(*there)
        simulation.run_for(STEP_SECONDS)
        for what, obj in steps:
            if what == "add":
                simulation.add(obj)
            elif simulation.get("Pod", obj["name"]) is not None:
                simulation.delete("Pod", obj["name"])
            simulation.run_for(STEP_SECONDS)
        pods = simulation.objects("Pod")
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in pods}


@pytest.mark.parametrize("seed", range(6))
def test_simulation_and_live_scheduler_agree(seed: int) -> None:
    """Random clusters and pods: sizes, selectors, taints, spreading, affinity, and priorities with evictions."""
    there, steps = _scenario(seed)
    live = run(_live(there, steps))
    assert _simulated(there, steps) == live
    assert sum(map(bool, live.values())) > 10
