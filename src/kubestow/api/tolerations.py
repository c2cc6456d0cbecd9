"""Taints and tolerations: a taint keeps pods off a node, or a device, unless they tolerate it."""

import re
from collections.abc import Iterable, Sequence

from kubestow.api.devices import DeviceTaint, DeviceToleration
from kubestow.api.label_syntax import parse_int64
from kubestow.api.node import Taint
from kubestow.api.pod import Toleration

REPELLING = ("NoSchedule", "NoExecute")
"""Effects of taints that keep a pod off a node, or a device from being allocated."""
_PLAIN_INTEGER = r"0|-?[1-9][0-9]*"


def tolerates(toleration: Toleration, taint: Taint, comparison_operators: bool) -> bool:
    """Return whether a toleration matches a taint: effect, key and value; empty effect and key match all.

    `comparison_operators` enables the operators Lt and Gt.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator == "Exists":
        return True
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator in ("Lt", "Gt") and comparison_operators:
        bound, number = _integer(toleration.value), _integer(taint.value)
        if bound is None or number is None:
            return False
        return number < bound if operator == "Lt" else number > bound
    return False


def tolerates_device(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration of a claim matches a taint of a device; empty effect and key match all."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: Iterable[str],
    comparison_operators: bool,
) -> Taint | None:
    """Return the first taint with one of the effects that no toleration matches; None if there is none."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(t, taint, comparison_operators) for t in tolerations):
            return taint
    return None


def _integer(text: str) -> int | None:
    """Parse an integer; None for any other text, also for leading zeros or a plus sign."""
    return parse_int64(text) if re.fullmatch(_PLAIN_INTEGER, text) else None
