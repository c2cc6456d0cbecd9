"""Health checks as metrics: a page of its own, /metrics/slis, asked for more often than the others."""

from kubestow.telemetry.metrics import exposition
from kubestow.telemetry.metrics.instruments import STABLE, Counter, Gauge
from kubestow.telemetry.metrics.options import MetricOptions
from kubestow.telemetry.metrics.process import add_start_time
from kubestow.telemetry.metrics.registry import Registry


class HealthMetrics:
    """Results of health checks."""

    def __init__(self, options: MetricOptions = MetricOptions()) -> None:  # noqa: B008 - frozen
        self.registry = Registry(options)
        self.passed = self.registry.add(
            Gauge("kubernetes_healthcheck", STABLE, "Whether a health check passed last, 1 or 0.", "name type")
        )
        self.checks = self.registry.add(
            Counter(
                "kubernetes_healthchecks_total",
                STABLE,
                "How often a health check was made, by result: 'success' or 'error'.",
                "name status type",
            )
        )

        add_start_time(self.registry)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The page, and its Content-Type."""
        return exposition.render(self.registry.families(), accept)
