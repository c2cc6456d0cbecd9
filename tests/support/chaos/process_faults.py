"""Stories: a memory limit, and an API server that is killed while it writes."""

import http.client
import json
import resource
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.chaos.planes import Api, Embedded, Plane
from support.chaos.world import Planes, Row, running_world
from support.integration.cluster import PODS, pod
from support.polling import PATIENCE

_WRITERS = 4


def little_memory(row: Row, folder: Path, planes: Planes, times: int) -> None:
    """Limit the scheduler's memory for a while: it continues, or exits and is restarted; no pod is lost."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(20)
        world.add_impossible_pod()
        scheduler = world.schedule()
        world.settle()

        def keep_running() -> None:
            # A failed scheduler finishes its tasks first, and may run for some more seconds.
            nonlocal scheduler
            if not scheduler.is_running:
                row.faults["ended for want of memory"] += 1
                scheduler = world.schedule()

        for number in range(times):
            keep_running()
            now = resource.RLIM_INFINITY
            room = scheduler.data_bytes() + world.rng.choice((0, 1 << 20, 4 << 20))
            resource.prlimit(scheduler.process.pid, resource.RLIMIT_DATA, (room, now))
            row.faults["memory limited"] += 1
            large = {"env": [{"name": "A", "value": "x" * 400_000}]}
            for index in range(20):
                body = pod(f"large-{number}-{index}", cpu="1m")
                body["spec"]["containers"][0] |= large
                world.create(PODS, body)
            world.proxy("s1").cut_all()
            world.churn(10)
            time.sleep(1.0)
            with suppress(ProcessLookupError):
                resource.prlimit(scheduler.process.pid, resource.RLIMIT_DATA, (now, now))
            for index in range(20):
                world.api.retry("DELETE", f"{PODS}/large-{number}-{index}")
            world.settle(meanwhile=keep_running)


def killed_while_writing(row: Row, folder: Path, _: Planes, times: int) -> None:
    """kill -9 for the API server while several clients write: acknowledged writes exist, in the returned versions."""
    with running_world(row, folder, Embedded) as world:
        world.add_nodes(20)
        acknowledged: dict[str, str] = {}
        for number in range(times):
            writers = [_Writer(world.plane, f"w{number}-{index}") for index in range(_WRITERS)]
            for writer in writers:
                writer.start()
            time.sleep(world.rng.uniform(0.05, 0.6))
            world.plane.kill()
            row.faults["killed while writing"] += 1
            for writer in writers:
                writer.join(PATIENCE)
                acknowledged |= writer.acknowledged
            world.plane.start()
            there = {name: found["metadata"]["resourceVersion"] for name, found in world.pods().items()}
            row.lost += [
                f"{name} was acknowledged as of {version} and is {there.get(name, 'gone')}"
                for name, version in acknowledged.items()
                if there.get(name) != version
            ]
            acknowledged = there
        row.faults["writes acknowledged"] = len(acknowledged)
        for name in acknowledged:
            world.api.retry("DELETE", f"{PODS}/{name}")
        world.schedule(proxied=False)
        world.add_pods(20)
        world.settle()


class _Writer(threading.Thread):
    """Creates and labels pods until the server is gone."""

    def __init__(self, plane: Plane, prefix: str) -> None:
        super().__init__(daemon=True)
        self._api = Api(plane)
        self._prefix = prefix
        self.acknowledged: dict[str, str] = {}
        """Versions by name."""

    def run(self) -> None:
        number = 0
        try:
            while True:
                name = f"{self._prefix}-{number}"
                # Gated, so that no other client changes it.
                body = pod(name, cpu="1m", schedulingGates=[{"name": "example.com/wait"}])
                self._write(name, "POST", PODS, body)
                label = {"metadata": {"labels": {"number": str(number)}}}
                self._write(name, "PATCH", f"{PODS}/{name}", label, "application/merge-patch+json")
                number += 1
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            # A pod written when the server was killed may have either version.
            self.acknowledged.pop(f"{self._prefix}-{number}", None)
        finally:
            self._api.close()

    def _write(self, name: str, *call: Any) -> None:
        status, answer = self._api.call(*call)
        if status in (200, 201):
            self.acknowledged[name] = answer["metadata"]["resourceVersion"]
