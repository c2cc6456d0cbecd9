"""Integers in selectors, and messages about invalid fields with the texts of Kubernetes."""

import json
import re
from collections.abc import Sequence

_INTEGER_FORM = re.compile(r"[+-]?[0-9]+", re.ASCII)


def parse_int64(text: str) -> int | None:
    """Parse a signed decimal integer of 64 bits; None for any other text."""
    if not _INTEGER_FORM.fullmatch(text) or len(text) > 64:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def invalid(path: str, value: str | Sequence[str], detail: str) -> str:
    """Return the message about a field with an invalid value."""
    shown = value if isinstance(value, str) else list(value) or None
    return f"{path}: Invalid value: {json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}: {detail}"


def unsupported(path: str, value: str, supported: Sequence[str]) -> str:
    """Return the message about a field whose value is not one of the supported values."""
    choices = ", ".join(f'"{choice}"' for choice in sorted(supported))
    return f'{path}: Unsupported value: "{value}": supported values: {choices}'


def aggregate(problems: Sequence[str]) -> str:
    """Join problems into one line, without duplicates."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
