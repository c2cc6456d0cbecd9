"""The version of Kubernetes whose feature gates apply: --emulated-version and --min-compatibility-version."""

import re
from collections.abc import Sequence

import msgspec

NEWEST = 37
"""The minor version of Kubernetes 1 that this program follows."""
_OLDEST = NEWEST - 3
_COMPONENT = "kube"
_VERSION = re.compile(r"\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")


class VersionError(ValueError):
    """The values of a flag are not a version, or not one that is supported; the message can follow the flag's name."""


class Versions(msgspec.Struct, frozen=True):
    """Minor versions of Kubernetes 1: the emulated one, and the oldest one of the components to work with."""

    emulated: int = NEWEST
    compatible: int = NEWEST - 1

    def __str__(self) -> str:
        return f"emulated version 1.{self.emulated}, min compatibility version 1.{self.compatible}"


def emulated_version(values: Sequence[str]) -> int:
    """Return the minor version that --emulated-version selects. Raises VersionError."""
    major, minor = _read(values) or (1, NEWEST)
    if not (1, _OLDEST) <= (major, minor) <= (1, NEWEST):
        raise VersionError(f"emulation version {major}.{minor} is not between [1.{_OLDEST}, 1.{NEWEST}.0]")
    return minor


def compatible_version(values: Sequence[str], emulated: int) -> int:
    """Return the minor version that --min-compatibility-version selects. Raises VersionError."""
    major, minor = _read(values) or (1, max(emulated - 1, _OLDEST))
    if not (1, _OLDEST) <= (major, minor) <= (1, emulated):
        span = f"[1.{_OLDEST}, 1.{emulated}]"
        raise VersionError(f"minCompatibilityVersion version {major}.{minor} is not between {span}")
    return minor


def _read(values: Sequence[str]) -> tuple[int, int] | None:
    """Return major and minor version of `1.36` or `kube=1.36`; None if there is no value."""
    found = None
    for value in values:
        component, equals, text = (part.strip() for part in value.partition("="))
        if not equals:
            component, text = _COMPONENT, value
        numbers = _VERSION.match(text)
        if numbers is None:
            raise VersionError(f'could not parse "{text}" as version')
        if numbers[2] is None:
            raise VersionError(f'illegal version string "{text}"')
        if int(numbers[3] or 0):
            raise VersionError(f"patch version not allowed, got: {component}={'.'.join(numbers.groups())}")
        if component != _COMPONENT:
            raise VersionError(f"component not registered: {component}")
        if found is not None:
            first, second = (f"{_COMPONENT}={version[0]}.{version[1]}" for version in (found, numbers.groups()))
            raise VersionError(f"duplicate version flag, {first} and {second}")
        found = int(numbers[1]), int(numbers[2])
    return found
