"""The profiles of a configuration, each with its plugins."""

from collections.abc import Callable

from kubestow.config import SchedulerConfiguration
from kubestow.framework.guard import Guard
from kubestow.framework.handle import Handle
from kubestow.framework.profile import Profile
from kubestow.framework.registry import Registry


def build_profiles(
    configuration: SchedulerConfiguration,
    registry: Registry,
    handle: Handle,
    stopwatch: Callable[[], float],
    guard: Guard | None = None,
) -> dict[str, Profile]:
    """Return the profiles by scheduler name; raises ProfileError. `guard` is that of plugins that are not pure."""
    return {
        config.schedulerName: Profile(config, registry, handle, stopwatch, guard) for config in configuration.profiles
    }
