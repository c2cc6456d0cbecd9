"""Estimates of the maximum cost of selectors, in the units and by the rules of the API server."""

import math

import pytest

from kubestow.api.cel import compile_selector
from kubestow.apiserver.rules.devices import max_cost
from support.cel.costly import CAPACITY, DOMAIN, ENDLESS, EXPRESSIONS, LIMIT, LISTED, at_the_limit, repeated

TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


def _max_cost(expression: str, *, lists: bool = False) -> float:
    return max_cost(compile_selector(expression, lists))


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ('"no-such-domain" in device.attributes', 3),
        ('device.driver == "dra.example.com"', 4),
        (f'{DOMAIN}["name"] == "fish"', 5),
        (f"cel.bind(dra, {DOMAIN}, dra.name)", 15),
        (f'{DOMAIN}.name.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)', 7),
        (f'!("name" in {CAPACITY}) || {CAPACITY}.name.isGreaterThan(quantity("1Ki"))', 11),
        ('device.attributes.exists_one(x, x == "dra.example.com")', 164),
        (f'{DOMAIN}.exists_one(x, x == "services")', 133),
        (f'{DOMAIN}.services.split("example").size() >= 2', 19),
        (f'{DOMAIN}.services.matches("[^a]?sym")', 18),
        ("device.allowMultipleAllocations == true", 3),
        (f"{TEN}.all(x, {TEN}.all(y, {TEN}.all(z, int('1'.find('[0-9]*')) < 100)))", 8_551),
    ],
)
def test_costs_are_those_of_the_api_server(expression: str, cost: float) -> None:
    """Costs are equal to the unit."""
    assert _max_cost(expression) == cost


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        (f"{DOMAIN}.names.size() == 2", 6),
        (f"{DOMAIN}.names.includes(true)", 52),
        (f"{DOMAIN}.names.exists(x, x > 0)", 389),
        (f'{DOMAIN}.names.all(x, x != "")', 261),
        (f'{DOMAIN}.names.all(x, x.isGreaterThan(semver("0.0.1")))', 389),
    ],
)
def test_costs_with_list_attributes(expression: str, cost: float) -> None:
    """Costs are equal to the unit."""
    assert _max_cost(expression, lists=True) == cost


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *LISTED])
def test_loops_cost_by_their_rounds(expression: str) -> None:
    """One round more than the limit allows is rejected."""
    lists = expression in LISTED
    outer, inner = at_the_limit(_max_cost(expression, lists=lists))
    costs = [_max_cost(repeated(expression, outer, rounds), lists=lists) for rounds in (inner, inner + 1)]
    assert costs[0] <= LIMIT < costs[1]


@pytest.mark.parametrize("expression", ENDLESS)
def test_values_of_unlimited_size_cost_an_unlimited_amount(expression: str) -> None:
    """Such as joined texts of unknown length."""
    assert _max_cost(expression) == math.inf
