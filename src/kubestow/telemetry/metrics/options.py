"""The metrics flags: which metrics are not served, and which label values are shown."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import yaml

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r"[a-zA-Z_][a-zA-Z0-9_]*"

PREVIOUS_VERSION = "1.36"
"""The only version whose hidden metrics can be requested."""


class MetricOptionsError(ValueError):
    """A metrics flag has an invalid value; the message names the flag."""


class MetricOptions(msgspec.Struct, frozen=True):
    """The values of the metrics flags. `MetricOptions()` serves everything."""

    disabled: frozenset[str] = frozenset()
    """Full names of metrics that are not served."""
    allowed: Mapping[tuple[str, str], frozenset[str]] = msgspec.field(default_factory=dict)
    """By metric and label, the values that are shown; others are merged as `unexpected`."""
    shows_hidden: bool = False
    """Whether deprecated metrics are served that this version hides."""


def metric_options(
    disabled: Iterable[str] = (),
    allowed: Mapping[str, str] | None = None,
    allowed_manifest: str = "",
    hidden_for_version: str = "",
) -> MetricOptions:
    """Parse the values of the metrics flags. Raises MetricOptionsError if one is invalid."""
    if hidden_for_version not in ("", PREVIOUS_VERSION):
        raise MetricOptionsError(
            f"--show-hidden-metrics-for-version must be omitted or {PREVIOUS_VERSION}, the previous minor version, "
            f"not {hidden_for_version}"
        )
    names = frozenset(disabled)
    for name in sorted(names):
        if not re.fullmatch(_NAME, name):
            raise MetricOptionsError(f"--disabled-metrics requires full names of metrics, not {name!r}")
    if allowed and allowed_manifest:
        raise MetricOptionsError("--allow-metric-labels and --allow-metric-labels-manifest exclude each other")
    if allowed_manifest:
        shown = _parse_allowed(_read_manifest(allowed_manifest), "--allow-metric-labels-manifest")
    else:
        shown = _parse_allowed(allowed or {}, "--allow-metric-labels")
    return MetricOptions(names, shown, shows_hidden=bool(hidden_for_version))


def _read_manifest(path: str) -> Mapping[str, str]:
    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise MetricOptionsError(f"--allow-metric-labels-manifest: cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise MetricOptionsError(f"--allow-metric-labels-manifest {path}: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(item, str) for pair in document.items() for item in pair):
        raise MetricOptionsError(
            f"--allow-metric-labels-manifest {path}: must map strings `metric,label` to strings `value,value`"
        )
    return document


def _parse_allowed(allowed: Mapping[str, str], flag: str) -> dict[tuple[str, str], frozenset[str]]:
    parsed = {}
    for key, values in allowed.items():
        if not re.fullmatch(f"{_NAME},{_LABEL}", key):
            raise MetricOptionsError(f"{flag}: {key!r} is not of the form metric,label")
        metric, _, label = key.partition(",")
        parsed[metric, label] = frozenset(values.split(","))
    return parsed
