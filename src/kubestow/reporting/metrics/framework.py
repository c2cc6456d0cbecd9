"""Plugins: how often they are called and how long they take."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.instruments import (
    ALPHA,
    BETA,
    STABLE,
    Counter,
    Histogram,
    Key,
    exponential_buckets,
)
from kubestow.reporting.metrics.registry import Registry

log = get_logger(__name__)

PLUGIN_BUCKETS = exponential_buckets(0.00001, 1.5, 20)
_COUNTED_POINTS = ("PreFilter", "Filter", "PreScore", "Score")


class HookLike(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def all_evaluations(self) -> int: ...


class ProfileLike(Protocol):
    """What is asked of a profile."""

    @property
    def name(self) -> str: ...

    def points(self) -> Mapping[str, Iterable[HookLike]]: ...


class FrameworkMetrics:
    """Observes the calls of plugins."""

    def __init__(self, registry: Registry) -> None:
        add = registry.add
        self._point_seconds = add(
            Histogram(
                "scheduler_framework_extension_point_duration_seconds",
                STABLE,
                "How long all plugins of an extension point took together.",
                exponential_buckets(0.0001, 2, 12),
                "extension_point profile status",
            )
        )
        self._plugin_seconds = add(
            Histogram(
                "scheduler_plugin_execution_duration_seconds",
                ALPHA,
                "How long one plugin took at an extension point; a sample of the cycles is timed.",
                PLUGIN_BUCKETS,
                "extension_point plugin status",
            )
        )
        self._evaluations = add(
            Counter(
                "scheduler_plugin_evaluation_total",
                BETA,
                "How often a plugin was asked, for PreFilter, Filter, PreScore and Score.",
                "extension_point plugin profile",
            )
        )

    def plugin_called(self, point: str, plugin: str, status: str, seconds: float) -> None:
        self._plugin_seconds.observe(seconds, point, plugin, status)

    def point_ran(self, profile: str, point: str, status: str, seconds: float) -> None:
        self._point_seconds.observe(seconds, point, profile, status)

    def plugin_failed(self, error: Exception) -> None:
        log.unexpected("Plugin failed; nothing comes of it", err=error)

    def watch_profile(self, profile: ProfileLike) -> None:
        """Take the number of evaluations from the plugins of this profile."""

        def evaluations() -> dict[Key, float]:
            points = profile.points()
            return {
                (point, hook.name, profile.name): hook.all_evaluations
                for point in _COUNTED_POINTS
                for hook in points.get(point, ())
                if hook.all_evaluations
            }

        self._evaluations.watch(evaluations)
