"""Semantic versions. The functions that compare versions are those of `quantity`."""

import re

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library, succeeds
from kubestow.api.cel.library.costs import reading
from kubestow.api.cel.library.strings import quote
from kubestow.api.cel.values import UINT_MAX, KubernetesValue

LIBRARY = Library()
define = LIBRARY.define

_NUMBER = r"[0-9]*"
_IDENTIFIER = r"[0-9A-Za-z-]*"


class Semver(KubernetesValue):
    """A version; its build metadata is ignored. The key orders versions.

    A prerelease sorts below its release, and numeric identifiers of a prerelease below others.
    """

    __slots__ = ("text",)
    type_name = "kubernetes.Semver"
    go_type = "cel.Semver"

    def __init__(self, text: str) -> None:
        """Parse a version. Raises ValueError."""
        if not text:
            raise ValueError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise ValueError("No Major.Minor.Patch elements found")
        rest, plus, build = parts[2].partition("+")
        patch, dash, prerelease = rest.partition("-")
        numbers = map(_number, ("Major", "Minor", "Patch"), (parts[0], parts[1], patch))
        identifiers = [_prerelease(identifier) for identifier in prerelease.split(".")] if dash else []
        for identifier in build.split(".") if plus else ():
            if not identifier:
                raise ValueError("Build meta data is empty")
            if not re.fullmatch(_IDENTIFIER, identifier):
                raise ValueError(f"Invalid character(s) found in build meta data {quote(identifier)}")
        super().__init__((*numbers, not dash, identifiers))
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash((*self.key[:4], *self.key[4]))


def _number(name: str, text: str) -> int:
    if not re.fullmatch(_NUMBER, text):
        raise ValueError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{name} number must not contain leading zeroes {quote(text)}")
    return _uint64(text)


def _prerelease(text: str) -> tuple[bool, int, str]:
    if not text:
        raise ValueError("Prerelease is empty")
    if re.fullmatch(_NUMBER, text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return False, _uint64(text), ""
    if not re.fullmatch(_IDENTIFIER, text):
        raise ValueError(f"Invalid character(s) found in prerelease {quote(text)}")
    return True, 0, text


def _uint64(text: str) -> int:
    problem = f"strconv.ParseUint: parsing {quote(text)}: "
    if not text:
        raise ValueError(problem + "invalid syntax")
    if len(text) > 20 or int(text) > UINT_MAX:
        raise ValueError(problem + "value out of range")
    return int(text)


def _normalized(text: str) -> str:
    """Return a version with three numbers, without a leading v and without leading zeros."""
    parts = []
    for part in text.removeprefix("v").split(".", 2):
        stripped = part.lstrip("0") if len(part) > 1 else part
        parts.append(stripped if stripped[:1].isdigit() or len(part) <= 1 else f"0{stripped}")
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


@define("semver", "(string) -> semver", "(string, bool) -> semver", cost=reading)
def to_semver(text: str, normalize: bool = False) -> Semver:
    try:
        return Semver(_normalized(text) if normalize else text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


define("isSemver", "(string) -> bool", "(string, bool) -> bool", cost=reading)(succeeds(to_semver))
for _place, _function in enumerate(("major", "minor", "patch")):
    define(_function, "semver.() -> int")(lambda version, place=_place: version.key[place])
