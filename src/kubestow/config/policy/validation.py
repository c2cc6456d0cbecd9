"""Rules for a decoded Policy. Paths are those of its file; all faults are found, not only the first."""

from collections.abc import Iterator, Mapping

from kubestow.config.configuration import Section
from kubestow.config.plugin_args import ratio_problems
from kubestow.config.policy.policy import LegacyExtender, Policy, PredicatePolicy, PriorityPolicy
from kubestow.config.policy.tables import NO_PRIORITY, OTHER_NAMES, PREDICATES, PRIORITIES
from kubestow.config.problems import Problem

_MOST_WEIGHT = 2**31 - 1
_RATIO = "requestedToCapacityRatioArguments"
_NEEDED_ARGUMENT = {
    "NodeLabel": "labelPreference",
    "RequestedToCapacityRatio": _RATIO,
    "ServiceAffinity": "serviceAntiAffinity",
}


def validate(policy: Policy) -> list[Problem]:
    """All that is wrong with a Policy; its extenders are judged as those of a configuration."""
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
                yield from presence.see(label, labels.presence, f"{path}.argument.labelsPresence.labels[{number}]")


def _priorities(priorities: tuple[PriorityPolicy, ...]) -> Iterator[Problem]:
    preference = _Opposites("preferred", "avoided")
    earlier: dict[str, PriorityPolicy] = {}
    for index, priority in enumerate(priorities):
        path, given = f"priorities[{index}]", _given(priority.argument)
        if priority.weight is None:
            message = f'the weight of "{priority.name}" is missing; it must be from 1 to {_MOST_WEIGHT}'
            yield Problem(f"{path}.weight", message)
        elif not 0 < priority.weight <= _MOST_WEIGHT:
            message = f'the weight of "{priority.name}" must be from 1 to {_MOST_WEIGHT}, not {priority.weight}'
            yield Problem(f"{path}.weight", message)
        if priority.argument is not None and len(given) != 1:
            yield Problem(path, f'"{priority.name}" must have exactly one argument, not {len(given)}')
            continue
        for argument in given:
            if argument in earlier:
                yield from _beside(earlier[argument], priority, argument, path)
            earlier[argument] = priority
        if priority.name == NO_PRIORITY or _is_known(priority.name, PRIORITIES):
            continue
        if priority.argument is None:
            yield _unknown(path, "priority", priority.name, ", ".join(_NEEDED_ARGUMENT.values()))
            continue
        if (label := priority.argument.labelPreference) is not None:
            yield from preference.see(label.label, label.presence, f"{path}.argument.labelPreference.label")
        if (ratio := priority.argument.requestedToCapacityRatioArguments) is not None:
            yield from ratio_problems(ratio.shape, ratio.resources, f"{path}.argument.{_RATIO}")


def _named_without_argument(priorities: tuple[PriorityPolicy, ...]) -> Iterator[Problem]:
    """Priorities by the name of the plugin, which count only beside some that have the arguments."""
    custom = {
        argument for priority in priorities if priority.name not in PRIORITIES for argument in _given(priority.argument)
    }
    for index, priority in enumerate(priorities):
        needed = _NEEDED_ARGUMENT.get(priority.name)
        if needed is not None and needed not in custom:
            message = f'"{priority.name}" takes its arguments from priorities of other names with {needed}, found none'
            yield Problem(f"priorities[{index}]", message)


def _beside(earlier: PriorityPolicy, priority: PriorityPolicy, argument: str, path: str) -> Iterator[Problem]:
    """Priorities with the same argument become one plugin with one weight."""
    if argument == _RATIO:
        yield Problem(path, f'"{priority.name}" has {argument} as "{earlier.name}" has; only one priority may')
    elif earlier.weight != priority.weight:
        message = f'"{priority.name}" must have the same weight as "{earlier.name}", since both have {argument}'
        yield Problem(f"{path}.weight", message)


class _Opposites:
    """Labels that are asked for, and their absence, which must not meet."""

    def __init__(self, wanted: str, unwanted: str) -> None:
        self._words = {True: wanted, False: unwanted}
        self._seen: dict[tuple[str, bool], str] = {}

    def see(self, label: str, wanted: bool, path: str) -> Iterator[Problem]:
        self._seen.setdefault((label, wanted), path)
        other = self._seen.get((label, not wanted))
        if other is not None:
            message = f'"{label}" cannot be {self._words[wanted]} here and {self._words[not wanted]} in {other}'
            yield Problem(path, message)


def _hard_weight(weight: int) -> Iterator[Problem]:
    if not 0 <= weight <= 100:
        yield Problem("hardPodAffinitySymmetricWeight", f"must be from 0 to 100, not {weight}")


def _timeout(extender: LegacyExtender, index: int) -> Iterator[Problem]:
    if extender.httpTimeout < 0:
        yield Problem(f"extenders[{index}].httpTimeout", f"must not be negative, as {extender.httpTimeout} is")


def _is_known(name: str, table: Mapping[str, object]) -> bool:
    """Whether a predicate or priority has a meaning without arguments."""
    return OTHER_NAMES.get(name, name) in table


def _given(argument: Section | None) -> list[str]:
    """The names of the arguments that are there."""
    if argument is None:
        return []
    return [name for name in argument.__struct_fields__ if getattr(argument, name) is not None]


def _unknown(path: str, what: str, name: str, arguments: str) -> Problem:
    return Problem(path, f'there is no {what} "{name}"; one of your own needs an argument: {arguments}')
