"""Rules for names in Kubernetes: qualified names (label keys, resource names) and label values.

Each function returns what is wrong with a name, or None.
"""

import re

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ALPHABET = "may hold letters, digits, '-', '_' and '.', and must start and end with a letter or digit"


def qualified_name_fault(name: str) -> str | None:
    """A name with an optional DNS prefix: `example.com/gpu`, `zone`."""
    prefix, slash, last = name.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return f'the part before "/" of "{name}" must be a lowercase DNS name such as example.com'
    if not last or len(last) > 63:
        return f'the name part of "{name}" must have 1 to 63 characters'
    if not _NAME.fullmatch(last):
        return f'the name part of "{name}" {_ALPHABET}'
    return None


def label_value_fault(value: str) -> str | None:
    if len(value) > 63:
        return f'the label value "{value}" must have at most 63 characters'
    if value and not _NAME.fullmatch(value):
        return f'the label value "{value}" {_ALPHABET}'
    return None


def extended_resource_fault(name: str) -> str | None:
    """A resource outside Kubernetes' own, which an extender may manage."""
    fault = qualified_name_fault(name)
    if fault:
        return fault
    own = "/" not in name or "kubernetes.io/" in name or name.startswith("requests.")
    if own or qualified_name_fault(f"requests.{name}"):
        return f'"{name}" is not an extended resource name; write for example example.com/{name.rpartition("/")[2]}'
    return None
