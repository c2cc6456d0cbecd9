"""Constraints between devices, and errors: the result is that of an exhaustive search.

A search ends with an error if a selector cannot be evaluated for a device, or if a constraint prevents a request from
getting all devices. The first error in the order of the search is reported, unless a solution is found before.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.scheduler.framework.results import Code
from support.plugins.device_allocation import cluster_of, got, names
from support.plugins.device_world import DRIVER, claim, claiming, device, device_slice, exactly
from support.plugins.plugin_calls import rejected

NUMA = f"{DRIVER}/numa"
FAILING = f"device.attributes['{DRIVER}'].numa >= 0"
"""Cannot be evaluated for devices without a numa."""


def outcome(
    devices: Sequence[str],
    requests: Sequence[tuple[int, str]],
    constraints: Sequence[dict[str, Any]],
    *,
    alike: bool = False,
) -> str:
    """Return the chosen device numbers, or "selector" or "constraint" with the device that it fails for.

    A device is its model and numa (x: none); a request is its count (0: all devices) and model (!: `FAILING`).
    """
    offered = []
    for n, of in enumerate(devices):
        model, numa = of[0], of[1]
        attributes: dict[str, Any] = {"serial": {"int": 0 if alike else n}, "model": {"string": model}}
        offered.append(device(f"d{n}", attributes=attributes | ({} if numa == "x" else {"numa": {"int": int(numa)}})))
    selectors = {"": [], "!": [FAILING]} | {of: [f"device.attributes['{DRIVER}'].model == '{of}'"] for of in "ab"}
    requested = [exactly(count, *selectors[model], name=f"r{n}") for n, (count, model) in enumerate(requests)]
    objects = device_slice("n", offered), claim("c", *requested, constraints=list(constraints))
    cluster, plugin = cluster_of(*objects)
    answer = rejected(plugin, cluster, claiming("p", "c"))
    if not answer:
        return "".join(name.removeprefix("n/d") for name in names(got(*objects)))
    if answer["n"].code is not Code.ERROR:
        return ""
    _, _, at = answer["n"].message.partition(f"{DRIVER}/n/d")
    return f"{'selector' if 'selector #0 on device' in answer['n'].message else 'constraint'} {at[0]}"


@pytest.mark.parametrize(
    ("devices", "requests", "expected"),
    [
        ("a0 a1 a0", [(3, "")], ""),
        ("a0 a0 a1 a0 a2", [(3, "")], "024"),
        ("a0 a0 a1", [(1, ""), (1, "")], "02"),
        ("a0 b1 a0", [(2, ""), (1, "b")], ""),
        ("a0 b0 a1 b2", [(2, ""), (1, "b")], "023"),
    ],
)
def test_distinct_values_of_all_devices(devices: str, requests: list[tuple[int, str]], expected: str) -> None:
    """A device must differ from every other device of all requests that the constraint covers."""
    assert outcome(devices.split(), requests, [{"distinctAttribute": NUMA}]) == expected


@pytest.mark.parametrize(
    ("devices", "requests", "expected"),
    [
        ("a0 a0", [(0, "")], "01"),
        ("a0 a1", [(0, "")], "constraint 1"),
        ("ax a0", [(0, "")], "constraint 0"),
        ("a0 b0", [(1, "a"), (0, "b")], "01"),
        ("a0 b1", [(1, "a"), (0, "b")], "constraint 1"),
        ("a0 a1", [(1, ""), (0, "")], "constraint 0"),
        ("a0 a0", [(1, ""), (0, "")], ""),
    ],
)
def test_a_constraint_that_prevents_taking_all_devices_is_an_error(
    devices: str, requests: list[tuple[int, str]], expected: str
) -> None:
    """The node is not rejected: the claim is invalid. In the last two cases too few devices remain for the request."""
    assert outcome(devices.split(), requests, [{"matchAttribute": NUMA}]) == expected


@pytest.mark.parametrize(
    ("devices", "requests", "expected"),
    [
        ("a0 ax", [(1, "!")], "0"),
        ("ax a0", [(1, "!")], "selector 0"),
        ("a0 ax", [(1, ""), (1, "!"), (1, "")], "selector 1"),
        ("a0 ax", [(1, "!"), (1, "a"), (1, "b")], "selector 1"),
        ("a0 ax", [(1, "b"), (1, "!")], ""),
    ],
)
def test_a_selector_that_cannot_be_evaluated_is_an_error(
    devices: str, requests: list[tuple[int, str]], expected: str
) -> None:
    """A solution before it is used; a device that is never tried is not evaluated."""
    assert outcome(devices.split(), requests, []) == expected


class SearchError(Exception):
    """The search ends with an error."""


class PlainSearch:
    """A search without any optimization."""

    def __init__(self, devices: Sequence[str], requests: Sequence[tuple[int, str]], constraints: Any) -> None:
        self.devices, self.requests, self.constraints = devices, requests, constraints
        self.picks: list[tuple[int, int]] = []
        """The request and the number of each device."""

    def outcome(self) -> str:
        try:
            for count, model in self.requests:
                if not count:
                    self._all(model)
            return "".join(str(n) for _, n in self.picks) if self.run() else ""
        except SearchError as error:
            return str(error)

    def run(self, request: int = 0, number: int = 0, start: int = 0) -> bool:
        if request == len(self.requests):
            return True
        count, model = self.requests[request]
        if not count:
            all_devices = self._all(model)
            if number < len(all_devices):
                return self._take(request, number, all_devices[number], must=True)
            return bool(all_devices) and self.run(request + 1)
        if number == count:
            return self.run(request + 1)
        return any(
            self._is_free(n) and self._matches(n, model) and self._take(request, number, n, must=False)
            for n in range(start, len(self.devices))
        )

    def _take(self, request: int, number: int, n: int, *, must: bool) -> bool:
        if not self._is_free(n):
            return False
        self.picks.append((request, n))
        holds = all(map(self._holds, self.constraints))
        if must and not holds:
            raise SearchError(f"constraint {n}")
        if holds and self.run(request, number + 1, n + 1):
            return True
        self.picks.pop()
        return False

    def _is_free(self, n: int) -> bool:
        return all(n != of for _, of in self.picks)

    def _all(self, model: str) -> list[int]:
        return [n for n in range(len(self.devices)) if self._matches(n, model)]

    def _matches(self, n: int, model: str) -> bool:
        if model == "!" and self.devices[n][1] == "x":
            raise SearchError(f"selector {n}")
        return model in ("", "!") or self.devices[n][0] == model

    def _holds(self, constraint: dict[str, Any]) -> bool:
        covered = constraint.get("requests") or ["r0", "r1", "r2"]
        values = [self.devices[n][1] for request, n in self.picks if f"r{request}" in covered]
        if "x" in values:
            return False
        return len(set(values)) == len(values) if "distinctAttribute" in constraint else len(set(values)) <= 1


@settings(max_examples=600, deadline=None)
@given(
    devices=st.lists(st.sampled_from(["a0", "a1", "a2", "b0", "b1", "b2", "ax"]), min_size=1, max_size=6),
    requests=st.lists(
        st.tuples(st.sampled_from([1, 2, 3, 0]), st.sampled_from(["", "", "a", "b", "!"])), min_size=1, max_size=3
    ),
    covered=st.lists(
        st.tuples(st.sampled_from(["distinctAttribute", "matchAttribute"]), st.sampled_from([[], ["r0"], ["r1"]])),
        max_size=2,
    ),
    alike=st.booleans(),
)
def test_optimizations_do_not_change_the_result(
    devices: list[str], requests: list[tuple[int, str]], covered: list[tuple[str, list[str]]], alike: bool
) -> None:
    """The chosen devices or the error are those of a plain search."""
    constraints = [{kind: NUMA, "requests": many} for kind, many in covered]
    assert outcome(devices, requests, constraints, alike=alike) == PlainSearch(devices, requests, constraints).outcome()
