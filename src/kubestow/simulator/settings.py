"""The settings of a simulation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from kubestow.apiserver.kubelets.scripts import Pace
from kubestow.config import Features, SchedulerConfiguration
from kubestow.simulator.in_memory.virtual_loop import START

CONTROLLERS = "*,-endpointslice-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller"
"""All controllers that concern pods and nodes."""


MAX_PODS = 1_000_000
"""Maximum number of pods that one object may request: more would take days, or all memory."""
MAX_NODES = 100_000
"""Maximum size of a group of nodes."""


class ArgumentError(ValueError):
    """An argument of a simulation is invalid; the message names it."""


def require(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise ArgumentError unless `value` is an instance of `kinds`; `expected` describe them."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise ArgumentError(f"{name}: must be {expected}, not {value!r:.60}")


def require_callable(name: str, value: object) -> None:
    """Raise ArgumentError unless a value is callable."""
    if not callable(value):
        raise ArgumentError(f"{name}: must be a function, not {value!r:.60}")


def require_seconds(name: str, value: float) -> None:
    """Raise ArgumentError unless a value is a finite number of seconds, 0 or more."""
    try:
        is_time = math.isfinite(value) and value >= 0
    except (TypeError, OverflowError):
        is_time = False
    if not is_time:
        raise ArgumentError(f"{name}: must be a number of seconds, 0 or more, not {value!r:.60}")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies between the scheduler and the API server, in seconds. A scheduling cycle takes no virtual time."""

    request: float = 0.005
    """From a write of the scheduler (a binding, a status, an eviction) to its execution."""
    watch: float = 0.005
    """From a change to its delivery to the scheduler."""

    def __post_init__(self) -> None:
        for name in ("request", "watch"):
            require_seconds(f"latencies.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class Settings:
    """How to simulate."""

    configuration: SchedulerConfiguration | str | None = None
    """The scheduler's configuration, its text, or None for the default."""
    plugins: tuple[type, ...] = ()
    """Plugins of your own, enabled in every profile that does not name them."""
    plugin_sources: tuple[str, ...] = ()
    """Files and modules with plugins, which the configuration enables by name."""
    kinds: tuple[type, ...] = ()
    """Kinds to serve besides those that the plugins declare."""
    features: Features = field(default_factory=Features)
    seed: int = 0
    """Seed of tie-breaking, generated names, UIDs and arrivals."""
    start: int = START
    """The clock at time zero, in seconds since the Unix epoch."""
    latencies: Latencies = field(default_factory=Latencies)
    pace: Pace = field(default_factory=Pace)
    """Default durations of starting, running and stopping a pod."""
    controllers: str = CONTROLLERS
    """As in kube-controller-manager's --controllers."""
    kubelets: bool = True
    """Whether bound pods run and end."""
    checked: bool = False
    """Whether invariants are checked at every step; doubles the run time."""
    timed: bool = False
    """Whether plugins are timed with this machine's clock, which differs from run to run."""
    polled: Mapping[str, Sequence[tuple[float, Any]]] = field(default_factory=dict)
    """Values that plugins poll, each with the time in seconds from which it applies, by the name of the plugin."""
    record_bytes: int = 0
    """Memory limit for `decisions`; 0: no decisions are recorded."""

    def __post_init__(self) -> None:
        for name, (kinds, expected) in _FIELD_TYPES.items():
            require(name, getattr(self, name), kinds, expected)
        for name in ("seed", "record_bytes"):
            if getattr(self, name) < 0:
                raise ArgumentError(f"{name}: must not be negative, as {getattr(self, name)} is")
        for plugin in self.plugins:
            require("plugins", plugin, type, "classes")
            require(f"plugins: {plugin.__name__}.name", getattr(plugin, "name", None), str, "text")
        for source in self.plugin_sources:
            require("plugin_sources", source, str, "names of files and modules")


_FIELD_TYPES: dict[str, tuple[Any, str]] = {
    "configuration": (
        (SchedulerConfiguration, str, type(None)),
        "a SchedulerConfiguration, the text of a file or None",
    ),
    "plugins": ((tuple, list), "classes"),
    "plugin_sources": ((tuple, list), "names of files and modules"),
    "features": (Features, "Features"),
    "seed": (int, "a whole number"),
    "start": (int, "a whole number of seconds"),
    "latencies": (Latencies, "Latencies"),
    "pace": (Pace, "a Pace"),
    "controllers": (str, "text, as of --controllers"),
    "kubelets": (bool, "True or False"),
    "checked": (bool, "True or False"),
    "timed": (bool, "True or False"),
    "polled": (Mapping, "values by plugin"),
    "record_bytes": (int, "a number of bytes"),
}


def with_changes(settings: Settings | None, changes: Mapping[str, Any]) -> Settings:
    """Return settings with changed fields, by default the default settings; raises ArgumentError."""
    require("settings", settings, (Settings, type(None)), "Settings")
    known = [one.name for one in fields(Settings)]
    for name in changes:
        if name not in known:
            raise ArgumentError(f"there is no setting {name!r}; there are: {', '.join(known)}")
    return replace(settings or Settings(), **changes)
