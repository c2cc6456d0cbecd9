"""Metrics about reloading the configuration and plugins while the scheduler runs."""

from kubestow.telemetry.metrics.instruments import RAW, Counter, Gauge
from kubestow.telemetry.metrics.registry import Registry


class ReloadMetrics:
    """What became of changed files."""

    def __init__(self, registry: Registry | None = None) -> None:
        add = (Registry() if registry is None else registry).add
        # A table. Each row: name, stability level, help, labels.
        # fmt: off
        self.reloads = add(Counter("kubestow_config_reloads_total",
            RAW, "How often configuration and plugins were reloaded, by result: 'success'; 'failure', what was there "
            "stayed; 'rollback', what was there before came back since plugins kept failing.", "result"))
        self.successful = add(Gauge("kubestow_config_last_reload_successful",
            RAW, "Whether what runs is what was loaded last: 0 after a failure or a rollback, else 1."))
        self.succeeded_at = add(Gauge("kubestow_config_last_reload_success_timestamp_seconds",
            RAW, "When configuration and plugins were last loaded with success, at the start or later."))
        self.successful.set(1)
