"""What a simulation is run with, beside objects."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from kubestow.apiserver.kubelets.scripts import Pace
from kubestow.config import Features, SchedulerConfiguration
from kubestow.simulator.in_memory.virtual_loop import START

CONTROLLERS = "*,-endpointslice-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller"
"""All that have to do with pods and nodes."""


MOST_PODS = 1_000_000
"""So many one object may ask for at once: more would take days, or all memory."""
MOST_NODES = 100_000
"""So many a group of nodes may have."""


class ArgumentError(ValueError):
    """What a simulation was given cannot be used; the message names the argument."""


def demand(name: str, value: object, kinds: type | tuple[type, ...], words: str) -> None:
    """Raise ArgumentError unless a value is of one of these types."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise ArgumentError(f"{name}: must be {words}, not {value!r:.60}")


def demand_callable(name: str, value: object) -> None:
    """Raise ArgumentError unless a value is a function, or like one."""
    if not callable(value):
        raise ArgumentError(f"{name}: must be a function, not {value!r:.60}")


def demand_seconds(name: str, value: float) -> None:
    """Raise ArgumentError unless a value is a time that can come."""
    try:
        is_time = math.isfinite(value) and value >= 0
    except (TypeError, OverflowError):
        is_time = False
    if not is_time:
        raise ArgumentError(f"{name}: must be a number of seconds, 0 or more, not {value!r:.60}")


@dataclass(frozen=True, slots=True)
class Latencies:
    """What takes time between the scheduler and the API server, in seconds. A scheduling cycle itself takes none."""

    request: float = 0.005
    """From a write of the scheduler (a binding, a status, an eviction) until it is carried out."""
    watch: float = 0.005
    """From a change until the scheduler hears of it."""

    def __post_init__(self) -> None:
        for name in ("request", "watch"):
            demand_seconds(f"latencies.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class Settings:
    """How to simulate."""

    configuration: SchedulerConfiguration | str | None = None
    """The scheduler's; the text of a file, or None for the default."""
    plugins: tuple[type, ...] = ()
    """Plugins of your own, enabled in every profile that does not name them."""
    plugin_sources: tuple[str, ...] = ()
    """Files and modules with plugins, which the configuration enables by name."""
    features: Features = field(default_factory=Features)
    seed: int = 0
    """Of every choice among equals, of names, uids and arrivals."""
    start: int = START
    """What the clock shows at time zero, in seconds since the Unix epoch."""
    latencies: Latencies = field(default_factory=Latencies)
    pace: Pace = field(default_factory=Pace)
    """How long pods take to start, run and stop where they do not say."""
    controllers: str = CONTROLLERS
    """As in kube-controller-manager's --controllers."""
    kubelets: bool = True
    """Whether pods that are bound run and end."""
    checked: bool = False
    """Whether invariants are checked whenever time moves on; costs about as much as the rest."""
    timed: bool = False
    """Whether plugins are timed on this machine's clock, which differs from run to run, not in virtual time."""
    record_bytes: int = 0
    """How much room there is for `decisions`; without any, none are kept."""

    def __post_init__(self) -> None:
        for name, (kinds, words) in _KINDS.items():
            demand(name, getattr(self, name), kinds, words)
        for name in ("seed", "record_bytes"):
            if getattr(self, name) < 0:
                raise ArgumentError(f"{name}: must not be negative, as {getattr(self, name)} is")
        for plugin in self.plugins:
            demand("plugins", plugin, type, "classes")
            demand(f"plugins: {plugin.__name__}.name", getattr(plugin, "name", None), str, "text")
        for source in self.plugin_sources:
            demand("plugin_sources", source, str, "names of files and modules")


_KINDS: dict[str, tuple[Any, str]] = {
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
    "record_bytes": (int, "a number of bytes"),
}


def changed(settings: Settings | None, changes: Mapping[str, Any]) -> Settings:
    """Settings, or those of old, with some fields changed; raises ArgumentError."""
    demand("settings", settings, (Settings, type(None)), "Settings")
    known = [one.name for one in fields(Settings)]
    for name in changes:
        if name not in known:
            raise ArgumentError(f"there is no setting {name!r}; there are: {', '.join(known)}")
    return replace(settings or Settings(), **changes)
