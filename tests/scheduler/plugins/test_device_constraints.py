"""Constraints between devices: the same devices are chosen as by an exhaustive search."""

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
        ("a0 a1 a0", [(3, "")], ""),
        ("a0 a0 a1 a0 a2", [(3, "")], "024"),
        ("a0 a0 a1", [(1, ""), (1, "")], "02"),
        ("a0 b1 a0", [(2, ""), (1, "b")], ""),
        ("a0 b0 a1 b2", [(2, ""), (1, "b")], "023"),
    ],
)
def test_distinct_values_of_all_devices(devices: str, requests: list[tuple[int, str]], expected: str) -> None:
    """A device must differ from every other device of all requests that the constraint covers."""
    assert chosen(devices.split(), requests, [{"distinctAttribute": NUMA}]) == expected


class PlainSearch:
    """A search without any optimization."""

    def __init__(self, devices: Sequence[str], requests: Sequence[tuple[int, str]], constraints: Any) -> None:
        self.devices, self.requests, self.constraints = devices, requests, constraints
        self.picks: list[tuple[int, int]] = []
        """The request and the number of each device."""

    def run(self, request: int = 0, number: int = 0, start: int = 0) -> bool:
        if request == len(self.requests):
            return True
        count, model = self.requests[request]
        if number == count:
            return self.run(request + 1)
        for n in range(start, len(self.devices)):
            if any(n == of for _, of in self.picks) or (model and self.devices[n][0] != model):
                continue
            self.picks.append((request, n))
            if all(map(self._holds, self.constraints)) and self.run(request, number + 1, n + 1):
                return True
            self.picks.pop()
        return False

    def _holds(self, constraint: dict[str, Any]) -> bool:
        covered = constraint.get("requests") or ["r0", "r1", "r2"]
        values = [self.devices[n][1] for request, n in self.picks if f"r{request}" in covered]
        return len(set(values)) == len(values) if "distinctAttribute" in constraint else len(set(values)) <= 1


@settings(max_examples=300, deadline=None)
@given(
    devices=st.lists(st.sampled_from(["a0", "a1", "a2", "b0", "b1", "b2"]), min_size=1, max_size=6),
    requests=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "", "a", "b"])), min_size=1, max_size=3),
    covered=st.lists(
        st.tuples(st.sampled_from(["distinctAttribute", "matchAttribute"]), st.sampled_from([[], ["r0"]])),
        min_size=1,
        max_size=2,
    ),
    alike=st.booleans(),
)
def test_optimizations_do_not_change_the_result(
    devices: list[str], requests: list[tuple[int, str]], covered: list[tuple[str, list[str]]], alike: bool
) -> None:
    """The chosen devices are those of a plain search."""
    constraints = [{kind: NUMA, "requests": many} for kind, many in covered]
    search = PlainSearch(devices, requests, constraints)
    expected = "".join(str(n) for _, n in search.picks) if search.run() else ""
    assert chosen(devices, requests, constraints, alike=alike) == expected
