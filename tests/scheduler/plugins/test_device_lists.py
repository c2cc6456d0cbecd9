"""List attributes, behind their gate: devices with common or distinct values."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.config.features import Features
from support.plugins.device_allocation import got, names
from support.plugins.device_world import DRIVER, claim, device, device_slice, exactly

ROOTS = f"{DRIVER}/roots"
MATCH, DISTINCT = {"matchAttribute": ROOTS}, {"distinctAttribute": ROOTS}
ON = Features(dra_list_type_attributes=True)

Attribute = dict[str, Any]


def chosen(
    attributes: Sequence[Attribute | None],
    counts: Sequence[int],
    constraint: dict[str, Any],
    features: Features = ON,
) -> list[int]:
    """Return the device numbers for requests with these counts; None is a device without the attribute."""
    devices = [device(f"d{number}", serial=number) for number in range(len(attributes))]
    for one, attribute in zip(devices, attributes, strict=True):
        one["attributes"] |= {} if attribute is None else {"roots": attribute}
    requested = [exactly(count, name=f"r{number}") for number, count in enumerate(counts)]
    allocations = got(device_slice("n", devices), claim("c", *requested, constraints=[constraint]), features=features)
    return [int(name.removeprefix("n/d")) for name in names(allocations)]


def strings(text: str) -> list[Attribute]:
    """Return a list attribute for each word, with its letters as values."""
    return [{"strings": list(word)} for word in text.split()]


@pytest.mark.parametrize(
    ("attributes", "counts", "expected"),
    [
        (strings("ab bc"), [2], [0, 1]),
        (strings("ab cd"), [2], []),
        (strings("ab bc ca"), [3], []),
        (strings("ab bc ab"), [2], [0, 1]),
        (strings("aab baa"), [2], [0, 1]),
        # The first two share only b; removing the second restores a.
        (strings("ab bc ac ad"), [3], [0, 2, 3]),
        (strings("ab bc a a"), [1, 1, 1], [0, 2, 3]),
        ([{"string": "a"}, {"strings": ["b", "a"]}], [2], [0, 1]),
        ([{"version": "1.0.0"}, {"string": "1.0.0"}], [2], []),
        ([{"version": "1.0.0"}, {"versions": ["2.0.0", "1.0.0"]}], [2], [0, 1]),
        ([{"ints": [1]}, {"bools": [True]}, {"int": 1}], [2], [0, 2]),
        ([{"bool": False}, {"bools": [True, False]}], [2], [0, 1]),
        ([None, {"int": 1}], [1], [1]),
        ([{"ints": []}, {"int": 1}], [1], [1]),
    ],
)
def test_common_values(attributes: Sequence[Attribute | None], counts: list[int], expected: list[int]) -> None:
    """All devices share a value of one type; a single value counts as a list of one."""
    assert chosen(attributes, counts, MATCH) == expected


@pytest.mark.parametrize(
    ("attributes", "counts", "expected"),
    [
        (strings("ab bc cd"), [2], [0, 2]),
        (strings("ab bc ca"), [2], []),
        (strings("ab cd"), [1, 1], [0, 1]),
        ([{"ints": [1]}, {"bools": [True]}], [2], [0, 1]),
        ([{"string": "a"}, {"strings": ["b", "a"]}, {"strings": ["b"]}], [2], [0, 2]),
        ([None, {"int": 1}, {"ints": [2, 3]}], [2], [1, 2]),
    ],
)
def test_distinct_values(attributes: Sequence[Attribute | None], counts: list[int], expected: list[int]) -> None:
    """No two devices share a value; values of different types are different."""
    assert chosen(attributes, counts, DISTINCT) == expected


@pytest.mark.parametrize("constraint", [MATCH, DISTINCT])
def test_without_the_gate_lists_have_no_values(constraint: dict[str, Any]) -> None:
    """A single device can have the list; no second device matches it."""
    assert chosen(strings("a b"), [1], constraint, Features()) == [0]
    assert chosen(strings("a b"), [2], constraint, Features()) == []
    assert chosen(strings("a a"), [2], constraint, Features()) == []


letters = st.lists(st.sampled_from("abc"), min_size=1, max_size=3)
attributes = st.one_of(
    st.none(),
    st.builds(lambda values: {"strings": values}, letters),
    st.builds(lambda value: {"string": value}, st.sampled_from("abc")),
)


@settings(max_examples=200, deadline=None)
@given(offered=st.lists(attributes, min_size=1, max_size=6), counts=st.lists(st.integers(1, 3), min_size=1, max_size=2))
def test_devices_are_found_if_a_solution_exists(offered: list[Attribute | None], counts: list[int]) -> None:
    """Devices with a common value are found exactly if some exist."""

    def fit(numbers: Sequence[int]) -> bool:
        sets = [set(next(iter((offered[number] or {"strings": ()}).values()))) for number in numbers]
        return bool(set.intersection(*sets))

    found = chosen(offered, counts, MATCH)
    if found:
        assert len(set(found)) == sum(counts)
        assert fit(found)
    else:
        assert not any(fit(way) for way in combinations(range(len(offered)), sum(counts)))
