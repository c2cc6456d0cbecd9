"""The profiles of a configuration, each with its plugins."""

from collections.abc import Callable

from kubestow.config import SchedulerConfiguration
from kubestow.framework.handle import Handle
from kubestow.framework.profile import Profile
from kubestow.framework.registry import Registry


def build_profiles(
    configuration: SchedulerConfiguration,
    registry: Registry,
    handle: Handle,
    stopwatch: Callable[[], float],
) -> dict[str, Profile]:
    """Profiles by scheduler name; raises ProfileError."""
    return {config.schedulerName: Profile(config, registry, handle, stopwatch) for config in configuration.profiles}
