"""The profiles of a configuration, each with its plugins."""

from collections.abc import Callable

from kubestow.config import SchedulerConfiguration
from kubestow.scheduler.framework.guard import Guard
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.registry import Registry


def build_profiles(
    configuration: SchedulerConfiguration,
    registry: Registry,
    handle: Handle,
    stopwatch: Callable[[], float],
    guard: Guard | None = None,
) -> dict[str, Profile]:
    """Return the profiles by scheduler name; raises ProfileError. `guard` wraps plugins neither built in nor pure."""
    built: dict[str, Profile] = {}
    try:
        for config in configuration.profiles:
            built[config.schedulerName] = Profile(config, registry, handle, stopwatch, guard)
    except BaseException:
        for profile in built.values():
            profile.close()
        raise
    return built
