"""Constraints between devices as in kube-scheduler v1.36, where distinct values need not all differ.

A device is compared with the last one of each request; removing a device removes the value of its request.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.plugins.device_allocation import got, names
from support.plugins.device_world import DRIVER, claim, device, device_slice, exactly

NUMA = f"{DRIVER}/numa"


def chosen(
    devices: Sequence[str],
    requests: Sequence[tuple[int, str]],
    constraints: Sequence[dict[str, Any]],
    *,
    alike: bool = False,
) -> str:
    """Return the chosen device numbers; a device is its model and numa, a request its count and model."""
    offered = [device(f"d{n}", serial=0 if alike else n, model=of[0], numa=int(of[1])) for n, of in enumerate(devices)]
    requested = [
        exactly(count, *([f"device.attributes['{DRIVER}'].model == '{model}'"] if model else []), name=f"r{n}")
        for n, (count, model) in enumerate(requests)
    ]
    allocations = got(device_slice("n", offered), claim("c", *requested, constraints=list(constraints)))
    return "".join(name.removeprefix("n/d") for name in names(allocations))


@pytest.mark.parametrize(
    ("devices", "requests", "expected"),
    [
        ("a0 a1 a0", [(3, "")], "012"),
        ("a0 a0 a1 a0", [(3, "")], "023"),
        ("a0 a0 a0", [(2, "")], ""),
        ("a0 a0 a1", [(1, ""), (1, "")], "02"),
        ("a0 b1 a0", [(2, ""), (1, "b")], "021"),
    ],
)
def test_distinct_values_are_compared_as_in_kube_scheduler(
    devices: str, requests: list[tuple[int, str]], expected: str
) -> None:
    """Only adjacent devices of one request are compared; the last example removes the compared value."""
    assert chosen(devices.split(), requests, [{"distinctAttribute": NUMA}]) == expected


class PlainSearch:
    """The search of kube-scheduler without any optimization."""

    def __init__(self, devices: Sequence[str], requests: Sequence[tuple[int, str]], constraints: Any) -> None:
        self.devices, self.requests, self.constraints = devices, requests, constraints
        self.last: list[dict[int, str]] = [{} for _ in constraints]
        self.picks: list[int] = []

    def run(self, request: int = 0, number: int = 0, start: int = 0) -> bool:
        if request == len(self.requests):
            return True
        count, model = self.requests[request]
        if number == count:
            return self.run(request + 1)
        for n in range(start, len(self.devices)):
            if n in self.picks or (model and self.devices[n][0] != model) or not self._add(request, n):
                continue
            self.picks.append(n)
            if self.run(request, number + 1, n + 1):
                return True
            self.picks.pop()
            self._remove(request, len(self.constraints))
        return False

    def _add(self, request: int, n: int) -> bool:
        for number, constraint in enumerate(self.constraints):
            covered = constraint.get("requests") or ["r0", "r1", "r2"]
            if f"r{request}" not in covered:
                continue
            if self.devices[n][1] in self.last[number].values():
                self._remove(request, number)
                return False
            self.last[number][request] = self.devices[n][1]
        return True

    def _remove(self, request: int, constraints: int) -> None:
        for last, constraint in list(zip(self.last, self.constraints, strict=True))[:constraints]:
            if f"r{request}" in (constraint.get("requests") or ["r0", "r1", "r2"]):
                last.pop(request, None)


@settings(max_examples=300, deadline=None)
@given(
    devices=st.lists(st.sampled_from(["a0", "a1", "a2", "b0", "b1", "b2"]), min_size=1, max_size=6),
    requests=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "", "a", "b"])), min_size=1, max_size=3),
    covered=st.lists(st.sampled_from([[], ["r0"]]), min_size=1, max_size=2),
    alike=st.booleans(),
)
def test_optimizations_do_not_change_the_result(
    devices: list[str], requests: list[tuple[int, str]], covered: list[list[str]], alike: bool
) -> None:
    """The chosen devices are those of a plain search."""
    constraints = [{"distinctAttribute": NUMA, "requests": many} for many in covered]
    search = PlainSearch(devices, requests, constraints)
    expected = "".join(map(str, search.picks)) if search.run() else ""
    assert chosen(devices, requests, constraints, alike=alike) == expected
