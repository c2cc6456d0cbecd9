"""What a pod does, as its annotations say, or else the commands of its containers where they are plain.

kubestow.dev/start-seconds   from binding until its containers run
kubestow.dev/ready-seconds   from running until ready
kubestow.dev/run-seconds     how long a container runs before it exits; `inf` is forever
kubestow.dev/exit-code       how it exits
kubestow.dev/failure-rate    the chance, 0 to 1, that it fails, with that exit code or 1
kubestow.dev/fail-indexes    the indexes of an indexed Job, such as 1,3-5, whose pods fail
kubestow.dev/stop-seconds    how long it takes to stop when told to

Of a pod that is meant to finish, a container whose command is as plain as `sleep 30` or `sh -c "exit 1"` does that.
With a dot and a container's name behind it, an annotation speaks of that container alone. Init containers and sidecars
listen to those only.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from kubestow.apiserver.kubelets.commands import deed

Object = dict[str, Any]
PREFIX = "kubestow.dev/"
_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast stand-in kubelets are where a pod does not say, in seconds."""

    start: float = 0.5
    """From binding to Running."""
    run: float = 2.0
    """How long containers run that are meant to finish."""
    stop: float = 0.5
    """From the wish to end until gone, at most the grace period."""


class Script:
    """The part of a pod that says what it does."""

    def __init__(self, pod: Object, pace: Pace) -> None:
        self._pace = pace
        self._said: dict[str, str] = {
            key.removeprefix(PREFIX): value
            for key, value in pod["metadata"].get("annotations", {}).items()
            if key.startswith(PREFIX)
        }
        self._uid: str = pod["metadata"]["uid"]
        self._index: str = pod["metadata"].get("labels", {}).get(_INDEX, "")
        spec = pod["spec"]
        self._ends: bool = spec.get("restartPolicy", "Always") != "Always"
        ending = [*spec.get("initContainers", ()), *(spec.get("containers", ()) if self._ends else ())]
        self._deeds = {one["name"]: deed(one) for one in ending if one.get("restartPolicy") != "Always"}

    def _seconds(self, what: str, default: float, container: str = "", *, alone: bool = False) -> float:
        text = self._said.get(f"{what}.{container}")
        if text is None and not alone:
            text = self._said.get(what)
        try:
            seconds = float(text) if text is not None else default
        except ValueError:
            return default
        return seconds if seconds >= 0 else default

    def start(self) -> float:
        """How long it takes until containers run."""
        return self._seconds("start-seconds", self._pace.start)

    def ready(self, container: str) -> float:
        """How long a container that runs takes to be ready."""
        return self._seconds("ready-seconds", 0.0, container)

    def stop(self) -> float:
        """How long containers take to stop."""
        return self._seconds("stop-seconds", self._pace.stop)

    def run(self, container: str, kind: str) -> float:
        """How long a container runs before it exits."""
        known = self._deeds.get(container)
        if kind != "main":
            usual = float("inf") if kind != "init" else known.seconds if known else 0.0
            return self._seconds("run-seconds", usual, container, alone=True)
        usual = known.seconds if known else self._pace.run if self._ends else float("inf")
        if usual == float("inf") and self._ends and self._tells_how_it_exits(container):
            usual = self._pace.run
        return self._seconds("run-seconds", usual, container)

    def _tells_how_it_exits(self, container: str) -> bool:
        return not self._said.keys().isdisjoint(("exit-code", f"exit-code.{container}", "failure-rate", "fail-indexes"))

    def exit_code(self, container: str, kind: str, attempt: int) -> int:
        """How a container exits for the n-th time."""
        text = self._said.get(f"exit-code.{container}") or (self._said.get("exit-code", "") if kind == "main" else "")
        given = int(text) if text.isdecimal() and len(text) < 4 else 1 if text else 0
        known = self._deeds.get(container)
        if kind != "main":
            return known.exit_code if known and not text else given
        if "failure-rate" in self._said:
            digest = hashlib.sha256(f"{self._uid}/{container}/{attempt}".encode()).digest()
            chance = int.from_bytes(digest[:8], "big") / 2**64
            return (given or 1) if chance < self._seconds("failure-rate", 0.0) else 0
        if "fail-indexes" in self._said:
            return (given or 1) if self._is_listed() else 0
        return known.exit_code if known and not text else given

    def _is_listed(self) -> bool:
        for part in self._said["fail-indexes"].split(","):
            first, _, last = part.strip().partition("-")
            numbers = first.isdecimal() and self._index.isdecimal() and (not last or last.isdecimal())
            if numbers and int(first) <= int(self._index) <= int(last or first):
                return True
        return False
