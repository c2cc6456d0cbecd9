"""Formats of names, labels and annotations, with Kubernetes' messages.

Each format is a function that returns the messages for a text; none if the text is valid.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from kubestow.api.name_formats import CONFIG_KEY, DNS_LABEL, DNS_SUBDOMAIN, LABEL_VALUE, key_problems
from kubestow.apiserver.errors import Cause

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
DUPLICATE = "FieldValueDuplicate"
FORBIDDEN = "FieldValueForbidden"
NOT_SUPPORTED = "FieldValueNotSupported"

MAX_PREFIX_LENGTH = 58
"""Maximum length of the prefix of a generated name."""
_MAX_ANNOTATIONS = 256 * 1024

Wrong = Callable[[str], Sequence[str]]


dns_label = DNS_LABEL.problems
dns_subdomain = DNS_SUBDOMAIN.problems
config_key = CONFIG_KEY.problems


def port_name(text: str) -> Sequence[str]:
    """Check the name of a port: at most 15 characters, one of them a letter."""
    broken = {
        "must be no more than 15 characters": len(text) > 15,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": not re.fullmatch("[-a-z0-9]+", text),
        "must contain at least one letter (a-z)": not re.search("[a-z]", text),
        "must not contain consecutive hyphens": "--" in text,
        "must not begin or end with a hyphen": text.startswith("-") or text.endswith("-"),
    }
    return [message for message, holds in broken.items() if holds]


qualified_name: Wrong = lru_cache(maxsize=4096)(key_problems)
"""The format of label keys: a name, with an optional DNS prefix and a slash."""
label_value = LABEL_VALUE.problems


def path_segment(name: str) -> Sequence[str]:
    """Check that a name can be a segment of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{one}'" for one in "/%" if one in name]


def quote_value(value: Any) -> str:
    """Return a value as messages quote it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def check_name(path: str, text: str, name_format: Wrong) -> Sequence[Cause]:
    """Check the format of the text in a field."""
    messages = name_format(text)
    return [(path, INVALID, f"Invalid value: {quote_value(text)}: {one}") for one in messages] if messages else ()


def check_labels(labels: dict[str, str], path: str) -> Iterator[Cause]:
    """Check labels, or a map of labels to match."""
    for key, value in labels.items():
        if qualified_name(key):
            yield from check_name(path, key, qualified_name)
        if label_value(value):
            yield from check_name(path, value, label_value)


def check_metadata(metadata: dict[str, Any]) -> Iterator[Cause]:
    """Check labels, annotations, owners and finalizers."""
    labels = metadata.get("labels")
    if labels:
        yield from check_labels(labels, "metadata.labels")
    annotations = metadata.get("annotations")
    if annotations:
        for key in annotations:
            yield from check_name("metadata.annotations", key.lower(), qualified_name)
        if sum(len(key) + len(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
            message = f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes"
            yield "metadata.annotations", "FieldValueTooLong", message
    owners = metadata.get("ownerReferences")
    if owners:
        controllers = [owner for owner in owners if owner.get("controller")]
        if len(controllers) > 1:
            message = "Invalid value: Only one reference can have Controller set to true"
            yield "metadata.ownerReferences", INVALID, message
        for index, owner in enumerate(owners):
            for key in ("uid", "name", "kind", "apiVersion"):
                if not owner.get(key):
                    yield f"metadata.ownerReferences[{index}].{key}", REQUIRED, "Required value"
    for finalizer in metadata.get("finalizers") or ():
        yield from check_name("metadata.finalizers", finalizer, qualified_name)
