"""Resolution of unquoted YAML scalars, by the rules of the Go library with which Kubernetes reads YAML.

`yes`, `on` and `y` are booleans, `0o17`, `017` and `1_000` are integers, `1e3` is a number, dates and `1:30` are text.
"""

import math
import re

_CONSTANTS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]{1,64}|0[bB][01]{1,64}|0[oO][0-7]{1,64}|0[0-7]{0,64}|[1-9][0-9]{0,64})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NUMERIC = frozenset("0123456789+-.")
"""The first characters of a number."""


def plain_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted YAML scalar."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMERIC:
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
        number = int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(digits):
        decimal = float(digits)
        # Kubernetes converts the file to JSON, in which 1e3 and 1.0 are written as integers.
        return int(decimal) if decimal.is_integer() and abs(decimal) < 1e21 else decimal
    return text
