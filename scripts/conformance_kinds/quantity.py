"""Conformance of kind `quantity`: value, milli-value and canonical text, and invalid texts."""

from typing import Any

from kubestow.api.quantity import QuantityError, canonical, milli, value


def check(case: dict[str, Any]) -> str | None:
    """Return the first quantity that differs from the recorded one, None if there is none."""
    for text, expected in zip(case["inputs"], case["expect"], strict=True):
        try:
            got = {"value": str(value(text)), "milli": str(milli(text)), "canonical": canonical(text)}
        except QuantityError as error:
            if "error" not in expected:
                return f"{text!r}: rejected ({error}), expected {expected}"
            continue
        if "error" in expected:
            return f"{text!r}: {got}, expected an error: {expected['error']}"
        for name, amount in got.items():
            if amount != expected[name]:
                return f"{text!r}: {name} is {amount}, expected {expected[name]}"
    return None
