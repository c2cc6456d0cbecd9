"""Names, labels and annotations: which texts are allowed."""

import re
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(rf"{_LABEL}\Z")
_DNS_LABEL_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?\Z")
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\Z")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z")
_MAX_ANNOTATIONS = 256 * 1024

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
DUPLICATE = "FieldValueDuplicate"
FORBIDDEN = "FieldValueForbidden"


def is_dns_label(name: str) -> bool:
    """Lower case letters, digits and dashes, at most 63."""
    return len(name) <= 63 and _DNS_LABEL.match(name) is not None


def is_service_name(name: str) -> bool:
    """A DNS label that starts with a letter."""
    return len(name) <= 63 and _DNS_LABEL_1035.match(name) is not None


def is_dns_subdomain(name: str) -> bool:
    """DNS labels joined by dots, at most 253 characters."""
    return len(name) <= 253 and _DNS_SUBDOMAIN.match(name) is not None


def is_path_segment(name: str) -> bool:
    """Anything that can stand in a path."""
    return name not in (".", "..") and "/" not in name and "%" not in name and len(name) <= 253


def is_qualified_name(key: str) -> bool:
    """A label key: a name, with an optional DNS prefix before a slash."""
    prefix, slash, name = key.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return len(name) <= 63 and _QUALIFIED.match(name) is not None


def is_label_value(value: str) -> bool:
    """What a label may be set to."""
    return len(value) <= 63 and _LABEL_VALUE.match(value) is not None


def wrong_labels(labels: dict[str, str], path: str) -> Iterator[Cause]:
    """What is wrong with labels or a map of labels to match."""
    for key, value in labels.items():
        if not is_qualified_name(key):
            yield (
                path,
                INVALID,
                f'Invalid value: "{key}": not a label key (letters, digits, - _ . after an optional prefix/)',
            )
        if not is_label_value(value):
            yield path, INVALID, f'Invalid value: "{value}": not a label value (at most 63 letters, digits, - _ .)'


def wrong_metadata(metadata: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with labels, annotations, owners and finalizers."""
    labels = metadata.get("labels")
    if labels:
        yield from wrong_labels(labels, "metadata.labels")
    annotations = metadata.get("annotations")
    if annotations:
        for key in annotations:
            if not is_qualified_name(key.lower()):
                yield "metadata.annotations", INVALID, f'Invalid value: "{key}": not a qualified name'
        if sum(len(key) + len(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
            yield (
                "metadata.annotations",
                "FieldValueTooLong",
                f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes",
            )
    owners = metadata.get("ownerReferences")
    if owners:
        controllers = [owner for owner in owners if owner.get("controller")]
        if len(controllers) > 1:
            yield (
                "metadata.ownerReferences",
                INVALID,
                "Invalid value: only one reference can have controller set to true",
            )
        for index, owner in enumerate(owners):
            for key in ("uid", "name", "kind", "apiVersion"):
                if not owner.get(key):
                    yield f"metadata.ownerReferences[{index}].{key}", REQUIRED, "Required value"
    for finalizer in metadata.get("finalizers") or ():
        if not is_qualified_name(finalizer):
            yield "metadata.finalizers", INVALID, f'Invalid value: "{finalizer}": not a qualified name'
