"""The amount of a device's capacities that a request consumes.

A capacity may have a policy: the default amount if a request names none, and the valid amounts, to which requested
amounts are rounded up. Steps are counted in whole units, or in thousandths if fractional ranges are enabled and the
range can be expressed in them; kube-scheduler computes both in 64 bits.
"""

from collections.abc import Mapping

import msgspec

from kubestow.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from kubestow.api.meta import RawQuantity
from kubestow.api.quantity import (
    INT64_MAX,
    NANO_PER_MILLI,
    NANO_PER_UNIT,
    canonical,
    format_nano_like,
    nano,
    value,
)


class CapacityError(Exception):
    """An amount cannot be computed, whatever else the device is used for."""


class Consumption(msgspec.Struct, frozen=True):
    """The consumption of a device's capacities by a request."""

    amounts: tuple[tuple[str, int, int], ...]
    """(name, consumed amount, total amount) of each capacity, in nano-units."""
    quantities: Mapping[str, str]
    """The consumed amounts as quantities, by name."""


def consumption_of(
    wanted: Mapping[str, RawQuantity], capacities: Mapping[str, DeviceCapacity], *, fractional: bool
) -> Consumption | None:
    """Return what a request consumes of a device; None if the request does not fit even on the unused device.

    `fractional`: whether ranges can be fractional. Raises CapacityError.
    """
    if any(name not in capacities for name in wanted):
        return None
    consumed = {name: _consumed(name, wanted.get(name), of, fractional) for name, of in capacities.items()}
    for name, capacity in capacities.items():
        if nano(consumed[name]) > nano(capacity.value) or _violates(consumed[name], capacity.requestPolicy, fractional):
            return None
    return Consumption(
        tuple([(name, nano(amount), nano(capacities[name].value)) for name, amount in consumed.items()]),
        consumed,
    )


def _consumed(name: str, wanted: RawQuantity | None, capacity: DeviceCapacity, fractional: bool) -> str:
    """Return the consumed amount in its canonical text."""
    try:
        amount = _rounded(wanted, capacity, fractional)
    except CapacityError as error:
        problem = f"capacity request cannot be represented in the device's range arithmetic: {error}"
        raise CapacityError(f'capacity "{name}": {problem}') from None
    if nano(amount) < 0:
        raise CapacityError(f'capacity "{name}": capacity value is negative')
    return amount


def _rounded(wanted: RawQuantity | None, capacity: DeviceCapacity, fractional: bool) -> str:
    policy = capacity.requestPolicy
    if wanted is None:
        return canonical(capacity.value if policy is None or policy.default is None else policy.default)
    if policy is None:
        return canonical(wanted)
    valid = policy.validRange
    if valid is None or valid.min is None:
        return canonical(next((of for of in policy.validValues if nano(wanted) <= nano(of)), wanted))
    if nano(wanted) < nano(valid.min):
        return canonical(valid.min)
    return canonical(wanted) if valid.step is None else _next_step(wanted, valid, valid.min, valid.step, fractional)


def _next_step(
    wanted: RawQuantity, valid: CapacityRequestPolicyRange, least: RawQuantity, step: RawQuantity, fractional: bool
) -> str:
    """Return the smallest amount of a range that is at least the wanted one."""
    if fractional and _is_in_millis(valid):
        unit, limit = NANO_PER_MILLI, "the milli-value range"
        if not _is_milli(wanted):
            raise CapacityError(f"request {canonical(wanted)} is not a representable milli value")
        amount, by, start = (nano(of) // NANO_PER_MILLI for of in (wanted, step, least))
    else:
        unit, limit = NANO_PER_UNIT, "MaxInt64"
        if nano(wanted) > INT64_MAX * NANO_PER_UNIT:
            raise CapacityError(f"request {canonical(wanted)} exceeds MaxInt64")
        amount, by, start = (value(of) for of in (wanted, step, least))
    rounded = start - (start - amount) // by * by
    if rounded > INT64_MAX:
        raise CapacityError(f"rounding request {canonical(wanted)} up to the next step passes {limit}")
    return format_nano_like(step, rounded * unit)


def _violates(amount: RawQuantity, policy: CapacityRequestPolicy | None, fractional: bool) -> bool:
    if policy is None or (policy.default is not None and nano(amount) == nano(policy.default)):
        return False
    valid = policy.validRange
    if valid is None:
        return bool(policy.validValues) and all(nano(amount) != nano(one) for one in policy.validValues)
    if valid.max is not None and nano(amount) > nano(valid.max):
        return True
    if valid.step is None:
        return False
    least = valid.min or 0
    if fractional and _is_in_millis(valid):
        return not _is_milli(amount) or (nano(amount) - nano(least)) % nano(valid.step) != 0
    return (value(amount) - value(least)) % value(valid.step) != 0


def _is_in_millis(valid: CapacityRequestPolicyRange) -> bool:
    """Return whether a range can be expressed in thousandths."""
    bounds = [of for of in (valid.min, valid.max, valid.step) if of is not None]
    return all(map(_is_milli, bounds)) and (valid.step is None or nano(valid.step) > 0)


def _is_milli(amount: RawQuantity) -> bool:
    return nano(amount) % NANO_PER_MILLI == 0 and abs(nano(amount)) <= INT64_MAX * NANO_PER_MILLI
