"""The life of a pod on its node: its containers and phase as a function of time.

A life stores when each container started, exits and restarts. `advance` applies all changes that are due until a time,
in order, each at its own time; `next_change` returns the time of the next one. Nothing here waits or writes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.kubelets.scripts import Script

Object = dict[str, Any]
NEVER = float("inf")
_FIRST_BACKOFF, _LONGEST_BACKOFF, _RESET_BACKOFF = 10.0, 300.0, 600.0
_KILLED, _TERMINATED = 137, 143


@dataclass(slots=True)
class Run:
    """The state of one container."""

    name: str
    kind: str
    """`init`, `sidecar` or `main`."""
    state: str = "waiting"
    """`waiting`, `running` or `terminated`."""
    started: float = NEVER
    ends: float = NEVER
    finished: float = 0.0
    code: int = 0
    restarts: int = 0
    backoff: float = 0.0
    restart_at: float = NEVER
    last: tuple[float, float, int] | None = None
    """Start, end and exit code of the previous run."""


@dataclass(slots=True)
class PodLifecycle:
    """The state of one pod on its node."""

    script: Script
    restart_policy: str
    seen: float
    """Time at which the kubelet first received the pod."""
    deadline: float = NEVER
    hooks: dict[str, float] = field(default_factory=dict)
    """Seconds that the preStop hook of a container sleeps, by container."""
    runs: list[Run] = field(default_factory=list)
    started: bool = False
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    stop_at: float = NEVER
    grace: float = NEVER
    allocated: dict[str, Object] = field(default_factory=dict)
    """Resources of the containers, once a resize of the pod was requested."""
    refused: tuple[str, str] = ("", "")
    """Reason and message of a resize that is not possible (yet)."""
    rv: int = 0
    """The version of the pod that the kubelet wrote last."""
    wakes: float = NEVER
    _killed: bool = False

    @property
    def done(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def initialized(self) -> bool:
        return all(
            run.state == "running" if run.kind == "sidecar" else run.state == "terminated" and run.code == 0
            for run in self.runs
            if run.kind != "main"
        ) or any(run.kind == "main" and (run.last or run.started != NEVER) for run in self.runs)

    def is_ready(self, run: Run, now: float) -> bool:
        """Return whether a container is ready: an init container once it succeeded, others after a delay."""
        if run.kind == "init":
            return run.state == "terminated" and run.code == 0
        return run.state == "running" and run.started + self.script.ready(run.name) <= now

    def advance(self, now: float) -> None:
        """Apply all changes that are due until `now`."""
        while True:
            at, act = min(self._due(), key=lambda one: one[0], default=(NEVER, None))
            if act is None or at > now:
                return
            act(at)

    def next_change(self, now: float) -> float:
        """Return the time of the next change of the pod or the readiness of a container, NEVER if there is none."""
        ready = (run.started + self.script.ready(run.name) for run in self.runs if run.state == "running")
        return min((at for at in (*(at for at, _ in self._due()), *ready) if at > now), default=NEVER)

    def _due(self) -> Iterator[tuple[float, Callable[[float], None]]]:
        if self.done:
            return
        yield self.stop_at, self._stop
        yield self.deadline, self._miss_deadline
        if not self.started:
            yield self.seen + self.script.start(), self._start
        for run in self.runs:
            if run.state == "running":
                yield run.ends, lambda at, run=run: self._exit(run, at)  # type: ignore[misc]
            elif run.restart_at != NEVER:
                yield run.restart_at, lambda at, run=run: self._restart(run, at)  # type: ignore[misc]

    # Changes

    def _start(self, at: float) -> None:
        self.started = True
        self._proceed(at)

    def _proceed(self, at: float) -> None:
        """Start the next init container, or the main containers once all init containers have succeeded."""
        for run in self.runs:
            if run.kind != "main" and run.state != ("running" if run.kind == "sidecar" else "terminated"):
                if run.restart_at == NEVER and run.state == "waiting":
                    self._run(run, at)
                if run.kind == "init" or run.state != "running":
                    return
        self.phase = "Running"
        for run in self.runs:
            if run.kind == "main" and run.started == NEVER:
                self._run(run, at)

    def _run(self, run: Run, at: float) -> None:
        run.state, run.started, run.restart_at = "running", at, NEVER
        run.ends = at + self.script.run(run.name, run.kind)

    def _restart(self, run: Run, at: float) -> None:
        run.restarts += 1
        self._run(run, at)
        if run.kind == "sidecar":
            self._proceed(at)

    def _exit(self, run: Run, at: float) -> None:
        run.code = self.script.exit_code(run.name, run.kind, run.restarts)
        run.state, run.finished = "terminated", at
        always = self.restart_policy == "Always" or run.kind == "sidecar"
        if run.kind == "init" and run.code == 0:
            self._proceed(at)
        elif always or (run.code and self.restart_policy == "OnFailure"):
            self._schedule_restart(run, at)
        elif run.kind == "init":
            self._end(at, "Failed")
        elif all(one.state == "terminated" and one.restart_at == NEVER for one in self.runs if one.kind == "main"):
            self._end(at, "Failed" if any(one.code for one in self.runs if one.kind == "main") else "Succeeded")

    def _schedule_restart(self, run: Run, at: float) -> None:
        if run.finished - run.started > _RESET_BACKOFF:
            run.backoff = 0.0
        run.last = (run.started, run.finished, run.code)
        run.restart_at = at + run.backoff
        run.state = "waiting" if run.backoff else "terminated"
        run.backoff = min(_LONGEST_BACKOFF, 2 * run.backoff or _FIRST_BACKOFF)

    def _end(self, at: float, phase: str, code: int = 0) -> None:
        """End all containers, and set the final phase."""
        for run in self.runs:
            if run.state == "running":
                run.state, run.finished, run.code = "terminated", at, code
            run.restart_at = NEVER
        self.phase = phase

    def _miss_deadline(self, at: float) -> None:
        self.reason = "DeadlineExceeded"
        self.message = "Pod was active on the node longer than the specified deadline"
        self._end(at, "Failed", _KILLED)

    def stop(self, now: float, grace: float) -> None:
        """Stop the containers: their preStop hooks run first; after the grace period they are killed."""
        hook = max((self.hooks.get(run.name, 0.0) for run in self.runs if run.state == "running"), default=0.0)
        seconds = hook + self.script.stop()
        self._killed, self.grace = seconds > grace, grace
        self.stop_at = min(self.stop_at, now + min(seconds, grace))

    def restart(self, name: str, now: float) -> None:
        """Restart a running container."""
        for run in self.runs:
            if run.name == name and run.state == "running":
                run.last = (run.started, now, 0)
                self._restart(run, now)

    def _stop(self, at: float) -> None:
        code = _KILLED if self._killed else _TERMINATED
        finished = self.started and not any(run.state != "terminated" or run.code for run in self.runs)
        self._end(at, "Succeeded" if finished else "Failed", code)


def lifecycle_of(pod: Object, script: Script, now: float) -> PodLifecycle:
    """Return the life of a pod: a new one, or one restored from its status."""
    spec, status = pod["spec"], pod.get("status", {})
    seen = parse_time(status["startTime"]) if status.get("startTime") else now
    life = PodLifecycle(script, spec.get("restartPolicy", "Always"), seen)
    if status.get("startTime"):
        life.phase, life.reason, life.message = status["phase"], status.get("reason", ""), status.get("message", "")
    statuses = {one["name"]: one for kind in ("c", "initC") for one in status.get(f"{kind}ontainerStatuses", ())}
    for kind, containers in (("init", spec.get("initContainers", ())), ("main", spec["containers"])):
        for one in containers:
            sidecar = kind == "init" and one.get("restartPolicy") == "Always"
            run = Run(one["name"], "sidecar" if sidecar else kind)
            hook = one.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
            if hook:
                life.hooks[run.name] = float(hook)
            life.runs.append(run)
            if one["name"] in statuses:
                _restore(life, run, statuses[one["name"]])
    return life


def _restore(life: PodLifecycle, run: Run, status: Object) -> None:
    state = status.get("state", {})
    run.restarts = status.get("restartCount", 0)
    if run.restarts:
        run.backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2.0 ** min(run.restarts - 1, 5))
    if status.get("allocatedResources"):
        life.allocated[run.name] = status.get("resources", {})
    before = status.get("lastState", {}).get("terminated")
    if before:
        run.last = (parse_time(before["startedAt"]), parse_time(before["finishedAt"]), before.get("exitCode", 0))
    life.started |= bool(state.get("running") or state.get("terminated") or before)
    if state.get("running"):
        run.state, run.started = "running", parse_time(state["running"]["startedAt"])
        run.ends = run.started + life.script.run(run.name, run.kind)
    elif state.get("terminated"):
        ended = state["terminated"]
        run.state, run.code = "terminated", ended.get("exitCode", 0)
        run.started, run.finished = parse_time(ended["startedAt"]), parse_time(ended["finishedAt"])
    elif run.last is not None:
        run.started, run.restart_at = run.last[0], run.last[1] + (run.backoff or _FIRST_BACKOFF)
