"""Invalid arguments of the library: the error names the argument."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.files import ObjectsError
from kubestow.simulator import ArgumentError, Latencies, ObjectError, Simulation
from kubestow.simulator.scenario.building import build
from kubestow.simulator.scenario.reading import read
from kubestow.simulator.settings import MAX_PODS
from support.simulator.objects import Write, deployment, nodes

Simulate = Callable[..., Simulation]


@pytest.mark.parametrize(
    ("setting", "value", "pattern"),
    [
        ("nodes", "three", r"there is no setting 'nodes'; there are: configuration, plugins,"),
        ("settings", {"seed": 1}, r"settings: must be Settings, not \{'seed': 1\}"),
        ("seed", -1, "seed: must not be negative, as -1 is"),
        ("seed", "x", "seed: must be a whole number, not 'x'"),
        ("seed", None, "seed: must be a whole number, not None"),
        ("seed", True, "seed: must be a whole number, not True"),
        ("configuration", {}, "configuration: must be a SchedulerConfiguration, the text of a file or None"),
        ("features", "A=true", "features: must be Features, not 'A=true'"),
        ("plugins", "Mine", "plugins: must be classes, not 'Mine'"),
        ("plugins", ("Mine",), "plugins: must be classes, not 'Mine'"),
        ("plugins", (int,), "plugins: int.name: must be text, not None"),
        ("plugin_sources", "mine.py", "plugin_sources: must be names of files and modules, not 'mine.py'"),
        ("latencies", 1, "latencies: must be Latencies, not 1"),
        ("kubelets", "no", "kubelets: must be True or False, not 'no'"),
        ("record_bytes", -1, "record_bytes: must not be negative"),
    ],
)
def test_settings(setting: str, value: Any, pattern: str) -> None:
    """Reported at once, also for a fork."""
    with pytest.raises(ArgumentError, match=pattern):
        Simulation(**{setting: value})
    if setting != "settings":
        with Simulation() as simulation, pytest.raises(ArgumentError, match=pattern):
            simulation.fork(**{setting: value})


def test_latencies() -> None:
    """Latencies must not be negative."""
    with pytest.raises(ArgumentError, match=r"latencies\.watch: must be a number of seconds, 0 or more, not -1"):
        Latencies(watch=-1)


@pytest.mark.parametrize(
    ("obj", "pattern"),
    [
        ("node.yaml", r"objects: must be manifests \(dicts\), not 'node.yaml'"),
        (None, r"objects: must be manifests \(dicts\), not None"),
        (nodes(1), r"objects: must be manifests \(dicts\), not \[\{"),
        ({}, r"objects: \{\}: needs apiVersion and kind, such as v1 and Pod"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": "p"}, "Pod: metadata: must be an object, not 'p'"),
        ({"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "a"}}, "Foo a: there is no kind 'Foo' in v1$"),
        (
            {"apiVersion": "apps/v1", "kind": "Deploymnt", "metadata": {"name": "a"}},
            r"Deploymnt a: there is no kind 'Deploymnt' in apps/v1; did you mean Deployment\?",
        ),
    ],
)
def test_objects(simulate: Simulate, obj: Any, pattern: str) -> None:
    """Invalid objects, and unknown kinds."""
    simulation = simulate()
    for take in (simulation.add, simulation.put):
        with pytest.raises(ObjectError, match=pattern):
            take(obj)


@pytest.mark.parametrize("invalid", ["5m", None, math.nan, math.inf, -1])
def test_times(simulate: Simulate, invalid: Any) -> None:
    """Times must be finite numbers, 0 or more."""
    simulation = simulate()
    pattern = "must be a number of seconds, 0 or more"
    with pytest.raises(ArgumentError, match=f"seconds: {pattern}"):
        simulation.run_for(invalid)
    with pytest.raises(ArgumentError, match=f"limit: {pattern}"):
        simulation.settle(invalid)
    with pytest.raises(ArgumentError, match=f"seconds: {pattern}"):
        simulation.at(invalid, lambda _: None)


def test_functions_and_names(simulate: Simulate) -> None:
    """Callbacks must be callable, and names must be text."""
    simulation = simulate()
    invalid: Any = 3
    with pytest.raises(ArgumentError, match="action: must be a function, not 3"):
        simulation.at(1, invalid)
    with pytest.raises(ArgumentError, match="condition: must be a function, not 3"):
        simulation.run_until(invalid, 1)
    with pytest.raises(ArgumentError, match="alter: must be a function, not 3"):
        simulation.update("Pod", "p", invalid)
    with pytest.raises(ArgumentError, match="name: must be text, not 3"):
        simulation.get("Pod", invalid)
    with pytest.raises(KeyError, match="there is no pod default/p, or it has ended"):
        simulation.node_of("p")


def test_too_many_pods_of_an_object_are_rejected(simulate: Simulate) -> None:
    """An object that requests too many pods is rejected, when it is created and when it is scaled."""
    pattern = r"Deployment d: .*spec\.replicas: Invalid value: 1000001: a simulation supports 1000000 pods per"
    simulation = simulate()
    with pytest.raises(ObjectError, match=pattern):
        simulation.add(deployment("d", MAX_PODS + 1))
    simulation.add(deployment("d", 0))
    with pytest.raises(ObjectError, match=pattern):
        simulation.update("Deployment", "d", lambda one: one["spec"].update(replicas=MAX_PODS + 1))


def test_too_many_nodes_or_pods_of_a_scenario_are_rejected(write: Write) -> None:
    """Reported with file, line and field before the run."""
    with pytest.raises(ObjectsError, match=r"line 4: spec\.nodes\[0\]\.count: 1000000000 nodes exceed the limit"):
        read([write("nodes: [{count: 1000000000}]")])
    event = "events: [{at: 1, scale: {kind: Deployment, name: d, replicas: 1000000000}}]"
    with pytest.raises(ObjectsError, match=r"spec\.events\[0\]\.scale\.replicas: expected `int` <= 1000000"):
        read([write(event)])
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 1000000000, template: {spec: {}}}"
    path = write("nodes: [{count: 1}]")
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"---\n{job}\n")
    with pytest.raises(ObjectsError, match=r"line 6: Job j: .*spec\.parallelism: Invalid value: 1000000000"):
        build(read([path]))
