"""Named formats: validation of DNS labels, qualified names, dates and similar texts, with Kubernetes' messages."""

import re
from collections.abc import Callable
from datetime import date
from functools import partial
from math import ceil

from kubestow.api.cel.functions import Library
from kubestow.api.cel.library import regex
from kubestow.api.cel.library.costs import TRAVERSAL
from kubestow.api.cel.library.urls import is_url
from kubestow.api.cel.values import NONE, KubernetesValue, Optional

LIBRARY = Library()
define = LIBRARY.define

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"

Validate = Callable[[str], list[str]]


class Format(KubernetesValue):
    """A named format; `problems` validates a text."""

    __slots__ = ("problems", "regex_size")
    type_name = "kubernetes.NamedFormat"
    go_type = "cel.Format"

    def __init__(self, name: str, regex_size: int, problems: Validate) -> None:
        super().__init__(name)
        self.regex_size = regex_size
        self.problems = problems


def _pattern(pattern: str, longest: int, message: str, examples: str, text: str, *, prefix: bool = False) -> list[str]:
    problems = [f"must be no more than {longest} characters"] if len(text) > longest else []
    if prefix and text.endswith("-"):
        text = text[:-1]
    if not regex.compiled(pattern).fullmatch(text):
        problems.append(f"{message} (e.g. {examples}, regex used for validation is '{pattern}')")
    return problems


_LABEL_PROBLEMS = partial(
    _pattern,
    _LABEL,
    63,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    "'my-name',  or '123-abc'",
)
_SUBDOMAIN_PROBLEMS = partial(
    _pattern,
    _SUBDOMAIN,
    253,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    "'example.com'",
)
_LABEL_1035_PROBLEMS = partial(
    _pattern,
    _LABEL_1035,
    63,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    "'my-name',  or 'abc-123'",
)
_VALUE_PROBLEMS = partial(
    _pattern,
    _VALUE,
    63,
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    "'MyValue',  or 'my_value',  or '12345'",
)
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_EXAMPLES = "'MyName',  or 'my.name',  or '123-abc'"
_NAME_PROBLEMS = partial(_pattern, _NAME, 63, _NAME_RULE, _NAME_EXAMPLES)


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        examples = f"(e.g. {_NAME_EXAMPLES}, regex used for validation is '{_NAME}')"
        prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_NAME_RULE} {examples} {prefixed}"]
    problems = []
    if slash:
        problems = [f"prefix part {problem}" for problem in _SUBDOMAIN_PROBLEMS(prefix)] if prefix else []
        problems += [] if prefix else ["prefix part must be non-empty"]
    problems += [] if name else ["name part must be non-empty"]
    return problems + [f"name part {problem}" for problem in _NAME_PROBLEMS(name)]


def _matching(message: str, pattern: str) -> Validate:
    return lambda text: [] if regex.compiled(f"(?i:{pattern})").fullmatch(text) else [message]


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    day, _, time = text.lower().partition("t")
    form = re.fullmatch(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", time)
    return form is not None and _is_date(day) and form[1] <= "23" and form[2] <= "59" and form[3] <= "59"


_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = "(?:[A-Z0-9+/]{4})*(?:[A-Z0-9+/]{2}==|[A-Z0-9+/]{3}=|[A-Z0-9+/]{4})"
FORMATS = {
    "dns1123Label": Format("DNS1123Label", 30, _LABEL_PROBLEMS),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, _SUBDOMAIN_PROBLEMS),
    "dns1035Label": Format("DNS1035Label", 30, _LABEL_1035_PROBLEMS),
    "qualifiedName": Format("QualifiedName", 60, _qualified_name),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, partial(_LABEL_PROBLEMS, prefix=True)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, partial(_SUBDOMAIN_PROBLEMS, prefix=True)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, partial(_LABEL_1035_PROBLEMS, prefix=True)),
    "labelValue": Format("LabelValue", 40, _VALUE_PROBLEMS),
    "uri": Format("URI", 1103, lambda text: [] if is_url(text) else [f'parse "{text}": invalid URI for request']),
    "uuid": Format("uuid", 80, _matching("does not match the UUID format", _UUID)),
    "byte": Format("byte", 84, _matching("invalid base64", _BASE64)),
    "date": Format("date", 84, lambda text: [] if _is_date(text) else ["invalid date"]),
    "datetime": Format("datetime", 84, lambda text: [] if _is_datetime(text) else ["invalid datetime"]),
}
for _name, _format in FORMATS.items():
    define(f"format.{_name}", "() -> format")(lambda format_=_format: format_)


@define("format.named", "(string) -> optional(format)")
def named(name: str) -> Optional:
    return Optional(True, FORMATS[name]) if name in FORMATS else NONE


def _validating(format_: Format, text: str) -> float:
    return ceil((1 + len(text)) * TRAVERSAL) * ceil(format_.regex_size * 0.25)


@define("validate", "format.(string) -> optional(list(string))", cost=_validating)
def validate(format_: Format, text: str) -> Optional:
    """Return the problems of a text, none if it is valid."""
    problems = format_.problems(text)
    return Optional(True, problems) if problems else NONE
