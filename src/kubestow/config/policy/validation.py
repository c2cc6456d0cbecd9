"""Validation of a decoded Policy. All problems are reported, not only the first."""

from collections.abc import Iterator, Mapping

from kubestow.config.configuration import Section
from kubestow.config.plugin_args import ratio_problems
from kubestow.config.policy.policy import LegacyExtender, Policy, PredicatePolicy, PriorityPolicy
from kubestow.config.policy.tables import DEPRECATED_NAMES, NO_PRIORITY, PREDICATES, PRIORITIES
from kubestow.config.problems import Problem

_MAX_WEIGHT = 2**31 - 1
_RATIO = "requestedToCapacityRatioArguments"
_NEEDED_ARGUMENT = {
    "NodeLabel": "labelPreference",
    "RequestedToCapacityRatio": _RATIO,
    "ServiceAffinity": "serviceAntiAffinity",
}


def validate(policy: Policy) -> list[Problem]:
    """Return the problems of a Policy; after its translation, the configuration is validated, too."""
    return [
        *_predicates(policy.predicates or ()),
        *_priorities(policy.priorities or ()),
        *_named_without_argument(policy.priorities or ()),
        *_hard_weight(policy.hardPodAffinitySymmetricWeight),
        *(problem for index, extender in enumerate(policy.extenders) for problem in _timeout(extender, index)),
    ]


def _predicates(predicates: tuple[PredicatePolicy, ...]) -> Iterator[Problem]:
    presence = _Opposites("present", "absent")
    for index, predicate in enumerate(predicates):
        path, given = f"predicates[{index}]", _given(predicate.argument)
        if predicate.argument is not None and len(given) != 1:
            yield Problem(path, f'"{predicate.name}" must have exactly one argument, not {len(given)}')
        elif _is_known(predicate.name, PREDICATES):
            continue
        elif predicate.argument is None:
            yield _unknown(path, "predicate", predicate.name, "serviceAffinity or labelsPresence")
        elif (labels := predicate.argument.labelsPresence) is not None:
            for number, label in enumerate(labels.labels):
                yield from presence.add(label, labels.presence, f"{path}.argument.labelsPresence.labels[{number}]")


def _priorities(priorities: tuple[PriorityPolicy, ...]) -> Iterator[Problem]:
    preference = _Opposites("preferred", "avoided")
    earlier: dict[str, PriorityPolicy] = {}
    for index, priority in enumerate(priorities):
        path, given = f"priorities[{index}]", _given(priority.argument)
        if priority.weight is None:
            message = f'the weight of "{priority.name}" is missing; it must be from 1 to {_MAX_WEIGHT}'
            yield Problem(f"{path}.weight", message)
        elif not 0 < priority.weight <= _MAX_WEIGHT:
            message = f'the weight of "{priority.name}" must be from 1 to {_MAX_WEIGHT}, not {priority.weight}'
            yield Problem(f"{path}.weight", message)
        if priority.argument is not None and len(given) != 1:
            yield Problem(path, f'"{priority.name}" must have exactly one argument, not {len(given)}')
            continue
        for argument in given:
            if argument in earlier:
                yield from _conflicts(earlier[argument], priority, argument, path)
            earlier[argument] = priority
        if priority.name == NO_PRIORITY or _is_known(priority.name, PRIORITIES):
            continue
        if priority.argument is None:
            yield _unknown(path, "priority", priority.name, ", ".join(_NEEDED_ARGUMENT.values()))
            continue
        if (label := priority.argument.labelPreference) is not None:
            yield from preference.add(label.label, label.presence, f"{path}.argument.labelPreference.label")
        if (ratio := priority.argument.requestedToCapacityRatioArguments) is not None:
            yield from ratio_problems(ratio.shape, ratio.resources, f"{path}.argument.{_RATIO}")


def _named_without_argument(priorities: tuple[PriorityPolicy, ...]) -> Iterator[Problem]:
    """Yield the problems of priorities named like a plugin, whose arguments come from custom priorities."""
    custom = {
        argument for priority in priorities if priority.name not in PRIORITIES for argument in _given(priority.argument)
    }
    for index, priority in enumerate(priorities):
        needed = _NEEDED_ARGUMENT.get(priority.name)
        if needed is not None and needed not in custom:
            message = f'"{priority.name}" takes its arguments from priorities of other names with {needed}, found none'
            yield Problem(f"priorities[{index}]", message)


def _conflicts(earlier: PriorityPolicy, priority: PriorityPolicy, argument: str, path: str) -> Iterator[Problem]:
    """Yield the problem of two priorities with the same argument, which become one plugin with one weight."""
    if argument == _RATIO:
        yield Problem(path, f'"{priority.name}" has {argument}, like "{earlier.name}"; only one priority may have it')
    elif earlier.weight != priority.weight:
        message = f'"{priority.name}" must have the same weight as "{earlier.name}", since both have {argument}'
        yield Problem(f"{path}.weight", message)


class _Opposites:
    """Detects labels that are both wanted and unwanted."""

    def __init__(self, wanted: str, unwanted: str) -> None:
        self._terms = {True: wanted, False: unwanted}
        self._seen: dict[tuple[str, bool], str] = {}

    def add(self, label: str, wanted: bool, path: str) -> Iterator[Problem]:
        self._seen.setdefault((label, wanted), path)
        other = self._seen.get((label, not wanted))
        if other is not None:
            message = f'"{label}" cannot be {self._terms[wanted]} here and {self._terms[not wanted]} in {other}'
            yield Problem(path, message)


def _hard_weight(weight: int) -> Iterator[Problem]:
    if not 0 <= weight <= 100:
        yield Problem("hardPodAffinitySymmetricWeight", f"must be from 0 to 100, not {weight}")


def _timeout(extender: LegacyExtender, index: int) -> Iterator[Problem]:
    if extender.httpTimeout < 0:
        yield Problem(f"extenders[{index}].httpTimeout", f"must be at least 0, not {extender.httpTimeout}")


def _is_known(name: str, table: Mapping[str, object]) -> bool:
    """Return whether a predicate or priority is valid without arguments."""
    return DEPRECATED_NAMES.get(name, name) in table


def _given(argument: Section | None) -> list[str]:
    """Return the names of the arguments that are set."""
    if argument is None:
        return []
    return [name for name in argument.__struct_fields__ if getattr(argument, name) is not None]


def _unknown(path: str, what: str, name: str, arguments: str) -> Problem:
    return Problem(path, f'there is no {what} "{name}"; a custom one needs an argument: {arguments}')
