"""Functions for quantities, such as the capacity of a device."""

import re
from functools import partial

from kubestow.api import quantity as quantities
from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library, succeeds
from kubestow.api.cel.library.costs import reading
from kubestow.api.cel.values import INT_MAX, INT_MIN, KubernetesValue
from kubestow.api.meta import RawQuantity

LIBRARY = Library()
define = LIBRARY.define

_MAX_LENGTH = 1_000
_FORM = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_READABLE = r"[+-]?[0-9]*(\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*"
"""The texts that Kubernetes can split; the suffix may be invalid."""


class Quantity(KubernetesValue):
    """An amount in nano-units; `whole` is whether Kubernetes can return it as an int64."""

    __slots__ = ("whole",)
    type_name = "kubernetes.Quantity"
    go_type = "cel.Quantity"

    def __init__(self, nano: int, whole: bool) -> None:
        super().__init__(nano)
        self.whole = whole

    @classmethod
    def read(cls, raw: RawQuantity) -> "Quantity":
        return cls(quantities.nano(raw), quantities.is_int64(raw))

    def __str__(self) -> str:
        return quantities.canonical(f"{self.key}n")


@define("quantity", "(string) -> quantity", cost=reading)
def to_quantity(text: str) -> Quantity:
    try:
        if len(text) > _MAX_LENGTH:
            raise EvaluationError("unable to parse numeric part of quantity")
        return Quantity.read(text)
    except quantities.QuantityError:
        if text and re.fullmatch(_READABLE, text):
            raise EvaluationError("unable to parse quantity's suffix") from None
        raise EvaluationError(f"quantities must match the regular expression '{_FORM}'") from None


define("isQuantity", "(string) -> bool", cost=reading)(succeeds(to_quantity))
define("sign", "(quantity) -> int")(lambda value: int(value.key > 0) - int(value.key < 0))
define("isInteger", "quantity.() -> bool")(lambda value: value.whole)


@define("asInteger", "quantity.() -> int")
def as_integer(value: Quantity) -> int:
    if not value.whole:
        raise EvaluationError("cannot convert value to integer")
    return int(value.key // quantities.NANO_PER_UNIT)


@define("asApproximateFloat", "quantity.() -> double")
def as_approximate_float(value: Quantity) -> float:
    try:
        return float(value.key / quantities.NANO_PER_UNIT)
    except OverflowError:
        return float("inf") if value.key > 0 else float("-inf")


def _sum(left: Quantity, right: Quantity | int, sign: int) -> Quantity:
    if isinstance(right, int):
        right = Quantity(right * quantities.NANO_PER_UNIT, True)
    total = left.key + sign * right.key
    fits = INT_MIN <= total // quantities.NANO_PER_UNIT <= INT_MAX
    return Quantity(total, left.whole and right.whole and fits)


for _other in ("quantity", "int"):
    define("add", f"quantity.({_other}) -> quantity")(partial(_sum, sign=1))
    define("sub", f"quantity.({_other}) -> quantity")(partial(_sum, sign=-1))
for _pair in ("quantity.(quantity)", "semver.(semver)"):
    define("isGreaterThan", f"{_pair} -> bool")(lambda left, right: left.key > right.key)
    define("isLessThan", f"{_pair} -> bool")(lambda left, right: left.key < right.key)
    define("compareTo", f"{_pair} -> int")(lambda left, right: int(left.key > right.key) - int(left.key < right.key))
