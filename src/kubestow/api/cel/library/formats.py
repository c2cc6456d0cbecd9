"""Named formats: validation of DNS labels, qualified names, dates and similar texts, with Kubernetes' messages."""

import re
from collections.abc import Callable
from datetime import date
from math import ceil

from kubestow.api.cel.functions import Library
from kubestow.api.cel.library import regex
from kubestow.api.cel.library.costs import TRAVERSAL
from kubestow.api.cel.library.urls import is_url
from kubestow.api.cel.values import NONE, KubernetesValue, Optional
from kubestow.api.name_formats import (
    DNS_1035_LABEL,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_VALUE,
    NameFormat,
    key_problems,
)

LIBRARY = Library()
define = LIBRARY.define

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


def _named(form: NameFormat, *, is_prefix: bool = False) -> Validate:
    """Return the validation of names, or of prefixes of names, which may end with a dash."""
    return lambda text: form.problems(text.removesuffix("-") if is_prefix else text, "characters")


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
    "dns1123Label": Format("DNS1123Label", 30, _named(DNS_LABEL)),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, _named(DNS_SUBDOMAIN)),
    "dns1035Label": Format("DNS1035Label", 30, _named(DNS_1035_LABEL)),
    "qualifiedName": Format("QualifiedName", 60, lambda text: key_problems(text, "characters", "a qualified name")),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, _named(DNS_LABEL, is_prefix=True)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, _named(DNS_SUBDOMAIN, is_prefix=True)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, _named(DNS_1035_LABEL, is_prefix=True)),
    "labelValue": Format("LabelValue", 40, _named(LABEL_VALUE)),
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
