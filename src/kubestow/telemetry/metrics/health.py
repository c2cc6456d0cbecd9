"""Results of health checks as metrics: served separately at /metrics/slis, since they are scraped more often."""

from kubestow.telemetry.metrics import exposition
from kubestow.telemetry.metrics.instruments import STABLE, Counter, Gauge
from kubestow.telemetry.metrics.options import MetricOptions
from kubestow.telemetry.metrics.process import add_start_time
from kubestow.telemetry.metrics.registry import Registry


class HealthMetrics:
    """The metrics of the health checks."""

    def __init__(self, options: MetricOptions = MetricOptions()) -> None:  # noqa: B008 - frozen
        self.registry = Registry(options)
        self.passed = self.registry.add(
            Gauge("kubernetes_healthcheck", STABLE, "Whether a health check passed (1) or failed (0).", "name type")
        )
        self.checks = self.registry.add(
            Counter(
                "kubernetes_healthchecks_total",
                STABLE,
                "Number of runs of a health check, by result: 'success' or 'error'.",
                "name status type",
            )
        )
        add_start_time(self.registry)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the page and its Content-Type."""
        return exposition.render(self.registry.families(), accept)
