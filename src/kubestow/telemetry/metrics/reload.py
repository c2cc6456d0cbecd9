"""Metrics of reloads of the configuration and the plugins while the scheduler runs."""

from kubestow.telemetry.metrics.instruments import NO_LEVEL, Counter, Gauge
from kubestow.telemetry.metrics.registry import Registry


class ReloadMetrics:
    """The metrics of reloads."""

    def __init__(self, registry: Registry | None = None) -> None:
        add = (Registry() if registry is None else registry).add
        # A table. Each row: name, stability level, help, labels.
        # fmt: off
        self.reloads = add(Counter("kubestow_config_reloads_total",
            NO_LEVEL, "Number of reloads of configuration and plugins, by result: 'success'; 'failure', the previous "
            "version stayed active; 'rollback', the previous version was restored because plugins kept failing.",
            "result"))
        self.successful = add(Gauge("kubestow_config_last_reload_successful",
            NO_LEVEL, "Whether the version loaded last is active: 0 after a failure or a rollback, else 1."))
        self.succeeded_at = add(Gauge("kubestow_config_last_reload_success_timestamp_seconds",
            NO_LEVEL, "Time of the last successful load of configuration and plugins, at the start or later."))
        self.successful.set(1)
