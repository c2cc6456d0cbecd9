"""Small objects and test doubles for the tests of the client."""

import asyncio
from typing import Any

from kubestow.api.node import Node
from kubestow.api.pod import Pod


def pod(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
        },
        "spec": spec,
    }


def node(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}


def middle() -> float:
    """Return a constant instead of a random number."""
    return 0.5


class FixedClock:
    """A wall clock that the test sets."""

    def __init__(self, seconds: float = 1_800_000_000.0) -> None:
        self.seconds = seconds

    def now(self) -> float:
        return self.seconds


class SkewedClock:
    """A wall clock that advances with the loop's time, but is wrong by a constant."""

    def __init__(self, skew: float = 0.0) -> None:
        self._offset = 1_800_000_000.0 + skew

    def now(self) -> float:
        return self._offset + asyncio.get_running_loop().time()


class Noted:
    """A handler that records its calls as short texts."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_add(self, obj: Pod | Node) -> None:
        self.seen.append(f"+{obj.metadata.name}@{obj.metadata.resourceVersion}")

    def on_update(self, old: Pod | Node, new: Pod | Node) -> None:
        self.seen.append(f"{new.metadata.name}@{old.metadata.resourceVersion}>{new.metadata.resourceVersion}")

    def on_delete(self, obj: Pod | Node) -> None:
        self.seen.append(f"-{obj.metadata.name}@{obj.metadata.resourceVersion}")

    def on_access(self, problem: str) -> None:
        self.seen.append(problem or "synced")
