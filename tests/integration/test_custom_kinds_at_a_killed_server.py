"""A plugin watches a custom resource of an API server that is killed, and restarted with its objects on disk."""

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support.chaos.planes import SCHEDULERS, Api, Embedded, Scheduler, kubeconfig
from support.integration.cluster import PODS, node, pod
from support.integration.custom_definitions import DEFINITIONS, definition
from support.polling import until

USER = SCHEDULERS[0]
ALLOWED = "/apis/example.com/v1/namespaces/default/alloweds"
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s}
profiles:
- plugins: {multiPoint: {enabled: [{name: Allows}]}}
"""
PLUGIN = """
from kubestow.plugin import unstructured, watch

Allowed = unstructured("example.com/v1", "alloweds", "Allowed")

class Allows:
    name = "Allows"
    watches = (watch(Allowed, when_unavailable="block"),)

    def __init__(self, args, handle):
        self.allowed = handle.objects(Allowed)

    def filter(self, state, pod, node):
        return None if self.allowed.get(node.name, "default") else "not allowed"
"""


class World:
    """An API server and a scheduler with the plugin."""

    def __init__(self, folder: Path) -> None:
        self._numbers = count()
        self.plane = Embedded(folder)
        self.plane.start()
        self.api = Api(self.plane)
        self.create(DEFINITIONS, definition("example.com", "Allowed", "v1"))
        until(lambda: self.api.call("GET", ALLOWED)[0] == 200)
        for name in ("n1", "n2"):
            self.create("/api/v1/nodes", node(name))
        self.allow("n1")
        access = kubeconfig(self.plane, USER, f"https://127.0.0.1:{self.plane.port}", folder / "kubeconfig")
        (folder / "scheduler.yaml").write_text(CONFIGURATION % access)
        (folder / "allows.py").write_text(PLUGIN)
        flags = (f"--config={folder / 'scheduler.yaml'}", f"--plugin={folder / 'allows.py'}")
        self.scheduler = Scheduler(folder, USER, access, *flags)

    def close(self) -> None:
        self.scheduler.kill()
        self.api.close()
        self.plane.close()

    def create(self, path: str, obj: Any) -> None:
        status, answer = self.api.retry("POST", path, obj)
        assert status == 201, answer

    def allow(self, name: str) -> None:
        self.create(ALLOWED, {"apiVersion": "example.com/v1", "kind": "Allowed", "metadata": {"name": name}})

    def wait_for(self, name: str) -> None:
        """Create pods until one goes to a node: each resource has a watch of its own."""
        until(lambda: self._place() == name, self.scheduler.output)

    def _place(self) -> str:
        """Create a pod; return its node."""
        name = f"p{next(self._numbers)}"
        self.create(PODS, pod(name))

        def node_of_pod() -> str:
            found = self.api.retry("GET", f"{PODS}/{name}")[1]
            return str(found["spec"].get("nodeName", ""))

        return str(until(node_of_pod, self.scheduler.output))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.close()


def test_objects_that_changed_at_a_restarted_server_are_seen(world: World) -> None:
    """What changed before the scheduler connects again, and what changes later."""
    world.wait_for("n1")
    world.scheduler.send(signal.SIGSTOP)
    world.plane.kill()
    world.plane.start()
    assert world.api.retry("DELETE", f"{ALLOWED}/n1")[0] == 200
    world.allow("n2")
    world.scheduler.send(signal.SIGCONT)
    world.wait_for("n2")
    world.allow("n1")
    assert world.api.retry("DELETE", f"{ALLOWED}/n2")[0] == 200
    world.wait_for("n1")


def test_an_outage_is_logged_once_for_all_resources(world: World) -> None:
    """The plugin decides with the objects that it knows until the server is back."""
    world.wait_for("n1")
    world.plane.kill()
    until(lambda: _lines(world, "cannot connect"), world.scheduler.output)
    world.plane.start()
    world.wait_for("n1")
    (broken,) = _lines(world, '"Watching again" err="the server closed the connection')
    assert "alloweds.example.com, " in broken
    assert not [line for line in _lines(world, "") if line[:1] not in "WI"]


def _lines(world: World, words: str) -> list[str]:
    return [line for line in world.scheduler.output().splitlines() if words in line]
