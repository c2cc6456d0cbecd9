"""The behavior of a pod: set by its annotations, or predicted from the commands of its containers.

kubestow.dev/start-seconds   time from binding until the containers run
kubestow.dev/ready-seconds   time from running until ready
kubestow.dev/run-seconds     run time of a container before it exits; `inf` is forever
kubestow.dev/exit-code       exit code
kubestow.dev/failure-rate    probability, 0 to 1, of failure, with that exit code or 1
kubestow.dev/fail-indexes    indexes of an indexed Job, such as 1,3-5, whose pods fail
kubestow.dev/stop-seconds    time to stop after a request

Simple commands such as `sleep 30` or `sh -c "exit 1"` are predicted for init containers, and for pods whose restart
policy is not Always. An annotation followed by a dot and a container's name applies to that container only; init
containers and sidecars use only such annotations.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from kubestow.apiserver.kubelets.commands import predict

Object = dict[str, Any]
PREFIX = "kubestow.dev/"
_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Pace:
    """Default delays of simulated kubelets, in seconds, for pods without annotations."""

    start: float = 0.5
    """Time from binding to Running."""
    run: float = 2.0
    """Run time of containers whose restart policy is not Always."""
    stop: float = 0.5
    """Time from the deletion request until the containers have ended; at most the grace period."""


class Script:
    """The behavior of one pod, read from its annotations and commands."""

    def __init__(self, pod: Object, pace: Pace) -> None:
        self._pace = pace
        self._given: dict[str, str] = {
            key.removeprefix(PREFIX): value
            for key, value in pod["metadata"].get("annotations", {}).items()
            if key.startswith(PREFIX)
        }
        self._uid: str = pod["metadata"]["uid"]
        self._index: str = pod["metadata"].get("labels", {}).get(_INDEX, "")
        spec = pod["spec"]
        self._ends: bool = spec.get("restartPolicy", "Always") != "Always"
        ending = [*spec.get("initContainers", ()), *(spec.get("containers", ()) if self._ends else ())]
        self._predictions = {one["name"]: predict(one) for one in ending if one.get("restartPolicy") != "Always"}

    def _seconds(self, what: str, default: float, container: str = "", *, alone: bool = False) -> float:
        text = self._given.get(f"{what}.{container}")
        if text is None and not alone:
            text = self._given.get(what)
        try:
            seconds = float(text) if text is not None else default
        except ValueError:
            return default
        return seconds if seconds >= 0 else default

    def start(self) -> float:
        """Return the seconds until the containers run."""
        return self._seconds("start-seconds", self._pace.start)

    def ready(self, container: str) -> float:
        """Return the seconds from the start of a container until it is ready."""
        return self._seconds("ready-seconds", 0.0, container)

    def stop(self) -> float:
        """Return the seconds that containers take to stop."""
        return self._seconds("stop-seconds", self._pace.stop)

    def run(self, container: str, kind: str) -> float:
        """Return the seconds that a container runs before it exits."""
        known = self._predictions.get(container)
        if kind != "main":
            usual = float("inf") if kind != "init" else known.seconds if known else 0.0
            return self._seconds("run-seconds", usual, container, alone=True)
        usual = known.seconds if known else self._pace.run if self._ends else float("inf")
        if usual == float("inf") and self._ends and self._has_exit_annotation(container):
            usual = self._pace.run
        return self._seconds("run-seconds", usual, container)

    def _has_exit_annotation(self, container: str) -> bool:
        names = ("exit-code", f"exit-code.{container}", "failure-rate", "fail-indexes")
        return not self._given.keys().isdisjoint(names)

    def exit_code(self, container: str, kind: str, attempt: int) -> int:
        """Return the exit code of the n-th run of a container."""
        text = self._given.get(f"exit-code.{container}") or (self._given.get("exit-code", "") if kind == "main" else "")
        given = int(text) if text.isdecimal() and len(text) < 4 else 1 if text else 0
        known = self._predictions.get(container)
        if kind != "main":
            return known.exit_code if known and not text else given
        if "failure-rate" in self._given:
            digest = hashlib.sha256(f"{self._uid}/{container}/{attempt}".encode()).digest()
            chance = int.from_bytes(digest[:8], "big") / 2**64
            return (given or 1) if chance < self._seconds("failure-rate", 0.0) else 0
        if "fail-indexes" in self._given:
            return (given or 1) if self._is_listed() else 0
        return known.exit_code if known and not text else given

    def _is_listed(self) -> bool:
        for part in self._given["fail-indexes"].split(","):
            first, _, last = part.strip().partition("-")
            numbers = first.isdecimal() and self._index.isdecimal() and (not last or last.isdecimal())
            if numbers and int(first) <= int(self._index) <= int(last or first):
                return True
        return False
