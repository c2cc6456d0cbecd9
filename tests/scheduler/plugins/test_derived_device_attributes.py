"""Attributes that requests derive, behind their gate: constraints use them instead of those of the devices."""

from collections.abc import Sequence
from typing import Any

import pytest

from kubestow.config.features import Features
from kubestow.scheduler.framework.results import Code
from support.plugins.device_allocation import cluster_of, got, names
from support.plugins.device_world import DRIVER, claim, claiming, device, device_slice, either, exactly, option
from support.plugins.plugin_calls import rejected

ON = Features(dra_derived_attributes=True)
RACK = "example.com/rack"
OWN = f"device.attributes['{DRIVER}']"


def derived(expression: str, name: str = RACK) -> dict[str, Any]:
    return {"derivedAttributes": [{"name": name, "expression": expression}]}


def offered(*zones: Any) -> Any:
    """Return a slice with a device for each value of an attribute."""
    return device_slice("n", [device(f"d{number}", zone=zone) for number, zone in enumerate(zones)])


MATCH, DISTINCT = {"matchAttribute": RACK}, {"distinctAttribute": RACK}


@pytest.mark.parametrize(
    ("expression", "constraint", "found"),
    [
        (f"{OWN}.zone.substring(0, 1)", MATCH, ["n/d0", "n/d2"]),
        (f"{OWN}.zone.substring(0, 1)", DISTINCT, ["n/d0", "n/d1"]),
        (f"int({OWN}.zone.substring(1))", MATCH, ["n/d0", "n/d1"]),
        (f"{OWN}.zone.startsWith('a')", MATCH, ["n/d0", "n/d2"]),
        (f"semver('1.0.' + {OWN}.zone.substring(1))", MATCH, ["n/d0", "n/d1"]),
        (f"{OWN}.zone", MATCH, []),
    ],
)
def test_constraints_use_derived_attributes(expression: str, constraint: dict[str, Any], found: list[str]) -> None:
    """Strings, ints, bools and versions."""
    wanted = claim("c", exactly(2, **derived(expression)), constraints=[constraint])
    assert names(got(offered("a1", "b1", "a2"), wanted, features=ON)) == found


def test_a_derived_attribute_replaces_that_of_the_device() -> None:
    """For the request that derives it; the other requests use that of the device."""
    name = f"{DRIVER}/zone"
    requested = exactly(name="a", **derived(f"{OWN}.zone + 1", name)), exactly(name="b")
    wanted = claim("c", *requested, constraints=[{"matchAttribute": name}])
    assert names(got(offered(1, 1, 2), wanted, features=ON)) == ["n/d0", "n/d2"]


def test_options_derive_their_own_attributes() -> None:
    """The constraint covers the option that is chosen."""
    options = option("x", 2, **derived(f"{OWN}.zone")), option("y", 2, **derived("'same'"))
    found = got(offered(1, 2), claim("c", either(*options), constraints=[MATCH]), features=ON)
    assert [of.request for of in found[0].devices.results] == ["r/y", "r/y"]


@pytest.mark.parametrize(("lists", "found"), [(True, ["n/d0", "n/d2"]), (False, [])])
def test_lists_need_their_gate(lists: bool, found: list[str]) -> None:
    """Without it, a list has no values to compare."""
    features = Features(dra_derived_attributes=True, dra_list_type_attributes=lists)
    wanted = claim("c", exactly(2, **derived(f"{OWN}.zone.split('')")), constraints=[MATCH])
    assert names(got(offered("ab", "cd", "bc"), wanted, features=features)) == found


EVALUATE = f"evaluate derived attribute {RACK} on device {DRIVER}/n/d0 failed: "


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("(", f"compile derived attribute {RACK} failed: compilation failed: ERROR: <input>:1:2: "),
        (
            "1.5",
            (
                f"compile derived attribute {RACK} failed: must evaluate to a primitive scalar (string, integer, "
                "boolean, semver) or a list of these scalars, not double"
            ),
        ),
        (f"{OWN}.none", f"{EVALUATE}no such key: none"),
        ("dyn(1.5)", f"{EVALUATE}unsupported CEL return type: float64"),
        ("dyn([1.5])", f"{EVALUATE}unsupported list element type: float64"),
        ("dyn([dyn(1), dyn('a')])", f"{EVALUATE}expected list element at index 1 to be int, got string"),
    ],
)
def test_an_attribute_that_cannot_be_derived_is_an_error(expression: str, problem: str) -> None:
    """The error is that of the first device for which a constraint needs it."""
    wanted = claim("c", exactly(2, **derived(expression)), constraints=[MATCH])
    cluster, plugin = cluster_of(offered("a", "b"), wanted, features=ON)
    answer = rejected(plugin, cluster, claiming("p", "c"))["n"]
    assert answer.code is Code.ERROR
    assert answer.message.startswith(f'running "DynamicResources" filter plugin: {problem}')
    unused = claim("c", exactly(2, **derived(expression)))
    assert names(got(offered("a", "b"), unused, features=ON)) == ["n/d0", "n/d1"]


@pytest.mark.parametrize(
    ("zones", "counts", "expected"),
    [(("a", 1), (1, 1), "d1"), (("a", "b", 1), (2, 1), "d2"), ((1, "a"), (1, 1), "d0")],
)
def test_the_first_error_in_the_order_of_the_search_is_reported(
    zones: Sequence[Any], counts: Sequence[int], expected: str
) -> None:
    """Devices are not left out because they cannot suffice."""
    fields = derived(f"{OWN}.zone.substring(0)")
    requested = [exactly(count, name=f"r{number}", **fields) for number, count in enumerate(counts)]
    wanted = claim("c", *requested, constraints=[MATCH])
    cluster, plugin = cluster_of(offered(*zones), wanted, features=ON)
    assert f"on device {DRIVER}/n/{expected} failed: " in rejected(plugin, cluster, claiming("p", "c"))["n"].message


def test_derived_attributes_require_their_gate() -> None:
    """Without it, a request that has any is an error."""
    cluster, plugin = cluster_of(offered(1), claim("c", exactly(**derived("1"))))
    problem = "cannot handle request with derived attributes, the feature is disabled"
    assert rejected(plugin, cluster, claiming("p", "c"))["n"].message.endswith(f"claim default/c, request r: {problem}")
