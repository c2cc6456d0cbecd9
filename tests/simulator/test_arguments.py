"""What the library is given and cannot use: an error names the argument."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.files import ObjectsError
from kubestow.simulator import ArgumentError, Latencies, ObjectError, Simulation
from kubestow.simulator.scenario.building import build
from kubestow.simulator.scenario.reading import read
from kubestow.simulator.settings import MAX_PODS
from simulator.conftest import Write, deployment, nodes

Simulate = Callable[..., Simulation]


@pytest.mark.parametrize(
    ("setting", "value", "words"),
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
def test_settings(setting: str, value: Any, words: str) -> None:
    """At once, and so when something is forked."""
    with pytest.raises(ArgumentError, match=words):
        Simulation(**{setting: value})
    if setting != "settings":
        with Simulation() as simulation, pytest.raises(ArgumentError, match=words):
            simulation.fork(**{setting: value})


def test_latencies() -> None:
    """They take no less than no time."""
    with pytest.raises(ArgumentError, match=r"latencies\.watch: must be a number of seconds, 0 or more, not -1"):
        Latencies(watch=-1)


@pytest.mark.parametrize(
    ("obj", "words"),
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
def test_objects(simulate: Simulate, obj: Any, words: str) -> None:
    """What is no object, or of a kind that there is not."""
    simulation = simulate()
    for take in (simulation.add, simulation.put):
        with pytest.raises(ObjectError, match=words):
            take(obj)


@pytest.mark.parametrize("wrong", ["5m", None, math.nan, math.inf, -1])
def test_times(simulate: Simulate, wrong: Any) -> None:
    """They are numbers, and come."""
    simulation = simulate()
    words = "must be a number of seconds, 0 or more"
    with pytest.raises(ArgumentError, match=f"seconds: {words}"):
        simulation.run_for(wrong)
    with pytest.raises(ArgumentError, match=f"limit: {words}"):
        simulation.settle(wrong)
    with pytest.raises(ArgumentError, match=f"seconds: {words}"):
        simulation.at(wrong, lambda _: None)


def test_functions_and_names(simulate: Simulate) -> None:
    """What is to be called can be, and names are text."""
    simulation = simulate()
    wrong: Any = 3
    with pytest.raises(ArgumentError, match="action: must be a function, not 3"):
        simulation.at(1, wrong)
    with pytest.raises(ArgumentError, match="condition: must be a function, not 3"):
        simulation.run_until(wrong, 1)
    with pytest.raises(ArgumentError, match="alter: must be a function, not 3"):
        simulation.update("Pod", "p", wrong)
    with pytest.raises(ArgumentError, match="name: must be text, not 3"):
        simulation.get("Pod", wrong)
    with pytest.raises(KeyError, match="there is no pod default/p, or it has ended"):
        simulation.node_of("p")


def test_more_pods_than_there_is_room_for(simulate: Simulate) -> None:
    """An object that asks for them is refused, when it comes and when it is scaled."""
    words = r"Deployment d: .*spec\.replicas: Invalid value: 1000001: a simulation supports 1000000 pods per"
    simulation = simulate()
    with pytest.raises(ObjectError, match=words):
        simulation.add(deployment("d", MAX_PODS + 1))
    simulation.add(deployment("d", 0))
    with pytest.raises(ObjectError, match=words):
        simulation.update("Deployment", "d", lambda one: one["spec"].update(replicas=MAX_PODS + 1))


def test_more_nodes_and_pods_in_a_scenario(write: Write) -> None:
    """Told by file, line and field, before anything runs."""
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
