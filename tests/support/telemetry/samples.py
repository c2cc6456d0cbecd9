"""Samples of a registry, read from its text."""

from prometheus_client.parser import text_string_to_metric_families

from kubestow.telemetry.metrics.exposition import render
from kubestow.telemetry.metrics.registry import Registry


def values(registry: Registry, prefix: str) -> dict[str, float]:
    """Return samples by prefix, as `name label=value`; of histograms, sum and count."""
    return {
        " ".join((sample.name.removeprefix(prefix), *(f"{label}={value}" for label, value in sample.labels.items()))): (
            sample.value
        )
        for family in text_string_to_metric_families(render(registry.families())[0].decode())
        for sample in family.samples
        if sample.name.startswith(prefix) and not sample.name.endswith("_bucket")
    }
