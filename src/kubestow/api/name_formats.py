"""Formats of names, such as labels of DNS, with Kubernetes' messages."""

import re
from collections.abc import Callable
from functools import cached_property

_ENDS = "start and end with an alphanumeric character"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


class NameFormat:
    """A pattern, compiled on first use, and a maximum length."""

    def __init__(self, rule: str, pattern: str, longest: int, *examples: str) -> None:
        listed = " or ".join(f"'{one}', " for one in examples)
        self.message = f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"
        self._pattern = pattern
        self._longest = longest

    @cached_property
    def _matches(self) -> Callable[[str], object]:
        return re.compile(self._pattern).fullmatch

    def problems(self, text: str, unit: str = "bytes") -> list[str]:
        """Return why a text does not have the format; empty if it does. The length is in bytes or in `characters`."""
        matches = self._matches(text)
        if matches and len(text) <= self._longest:
            return []
        problems = [] if matches else [self.message]
        if len(text if unit == "characters" else text.encode()) > self._longest:
            problems.insert(0, f"must be no more than {self._longest} {unit}")
        return problems


DNS_LABEL = NameFormat(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must {_ENDS}",
    _LABEL, 63, "my-name", "123-abc",
)  # fmt: skip
DNS_SUBDOMAIN = NameFormat(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must {_ENDS}",
    rf"{_LABEL}(\.{_LABEL})*", 253, "example.com",
)  # fmt: skip
DNS_1035_LABEL = NameFormat(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?", 63, "my-name", "abc-123",
)  # fmt: skip
CONFIG_KEY = NameFormat(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+", 253, "key.name", "KEY_NAME", "key-name",
)  # fmt: skip
LABEL_VALUE = NameFormat(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must {_ENDS}",
    f"({_NAME})?", 63, "MyValue", "my_value", "12345",
)  # fmt: skip
_NAME_PART = NameFormat(
    f"must consist of alphanumeric characters, '-', '_' or '.', and must {_ENDS}",
    _NAME, 63, "MyName", "my.name", "123-abc",
)  # fmt: skip


def key_problems(key: str, unit: str = "bytes", called: str = "a valid label key") -> list[str]:
    """Return why a text is not a label key, `name` or `dns.prefix/name`; empty if it is."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"{called} {_NAME_PART.message} {example}"]
    problems = []
    for prefix in prefixes:
        wrong = DNS_SUBDOMAIN.problems(prefix, unit) if prefix else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in wrong]
    problems += [] if name else ["name part must be non-empty"]
    return problems + [f"name part {problem}" for problem in _NAME_PART.problems(name, unit)]
