"""Validation of label keys and values, and messages about invalid fields, both with the texts of Kubernetes."""

import json
import re
from collections.abc import Sequence

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_FORM = re.compile(_NAME)
_SUBDOMAIN_FORM = re.compile(_SUBDOMAIN)
_INTEGER_FORM = re.compile(r"[+-]?[0-9]+", re.ASCII)

_ALPHANUMERIC = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_NAME_RULE = f"must consist of {_ALPHANUMERIC} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
_NAME_RULE += f"regex used for validation is '{_NAME}')"
_VALUE_RULE = f"a valid label must be an empty string or consist of {_ALPHANUMERIC} "
_VALUE_RULE += f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_NAME})?')"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
)
_SUBDOMAIN_RULE += "start and end with an alphanumeric character (e.g. 'example.com', "
_SUBDOMAIN_RULE += f"regex used for validation is '{_SUBDOMAIN}')"


def key_problems(key: str) -> list[str]:
    """Return why a text is not a label key, `name` or `dns.prefix/name`; empty if it is."""
    parts = key.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if len(parts) == 2:
        problems += [f"prefix part {problem}" for problem in _subdomain_problems(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _NAME_FORM.fullmatch(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def value_problems(value: str) -> list[str]:
    """Return why a text is not a label value; empty if it is."""
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 bytes")
    if value and not _NAME_FORM.fullmatch(value):
        problems.append(_VALUE_RULE)
    return problems


def _subdomain_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    problems = []
    if len(prefix) > 253:
        problems.append("must be no more than 253 bytes")
    if not _SUBDOMAIN_FORM.fullmatch(prefix):
        problems.append(_SUBDOMAIN_RULE)
    return problems


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
