"""Quantities: value, milli-value, canonical text, and which texts are none."""

from typing import Any

from kubestow.api.quantity import QuantityError, canonical, milli, value


def check(case: dict[str, Any]) -> str | None:
    """The first quantity that is read otherwise than recorded."""
    for text, expected in zip(case["inputs"], case["expect"], strict=True):
        try:
            got = {"value": str(value(text)), "milli": str(milli(text)), "canonical": canonical(text)}
        except QuantityError as error:
            if "error" not in expected:
                return f"{text!r}: refused ({error}), expected {expected}"
            continue
        if "error" in expected:
            return f"{text!r}: {got}, expected an error: {expected['error']}"
        for name, amount in got.items():
            if amount != expected[name]:
                return f"{text!r}: {name} is {amount}, expected {expected[name]}"
    return None
