"""Options of decisions and of tracing. A small module, so that flags are validated before the scheduler is imported."""

from typing import NamedTuple

import msgspec
import yaml

_VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1")
_KIND = "TracingConfiguration"
_MILLION = 1_000_000


class DecisionOptions(msgspec.Struct, frozen=True):
    """Storage and output of decisions."""

    record_bytes: int = 0
    """0: no records."""
    log: str = ""
    """A file, or `-` for standard output; empty: no log."""
    log_bytes: int = 0
    log_backups: int = 0
    log_nodes: bool = False
    annotates: bool = False
    """Whether pods are annotated with decisions."""


class TracingOptions(NamedTuple):
    """The endpoint, the number of sampled cycles per million, and whether plugins have spans."""

    endpoint: str
    per_million: int
    plugins: bool


class _File(msgspec.Struct, forbid_unknown_fields=True):
    apiVersion: str = ""
    kind: str = ""
    endpoint: str = "localhost:4317"
    samplingRatePerMillion: int = 0


def tracing_options(text: str, *, plugins: bool) -> TracingOptions:
    """Parse a configuration file. Raises ValueError with the name of the field."""
    try:
        found = msgspec.convert(yaml.safe_load(text) or {}, _File)
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise ValueError(str(error)) from None
    if found.kind != _KIND or found.apiVersion not in _VERSIONS:
        raise ValueError(f"must be of kind {_KIND} and apiVersion {' or '.join(_VERSIONS)}")
    if not 0 <= found.samplingRatePerMillion <= _MILLION:
        raise ValueError(f"samplingRatePerMillion: must be from 0 to {_MILLION}, not {found.samplingRatePerMillion}")
    if ":" not in found.endpoint or "/" in found.endpoint:
        raise ValueError(f"endpoint: must be host:port, not {found.endpoint!r}")
    return TracingOptions(found.endpoint, found.samplingRatePerMillion, plugins)
