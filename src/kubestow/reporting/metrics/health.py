"""Health checks as metrics: a page of its own, /metrics/slis, asked for more often than the others."""

from kubestow.reporting.metrics import exposition
from kubestow.reporting.metrics.instruments import STABLE, Counter, Gauge
from kubestow.reporting.metrics.options import MetricOptions
from kubestow.reporting.metrics.registry import Registry


class HealthMetrics:
    """Is told the result of every health check."""

    def __init__(self, options: MetricOptions) -> None:
        self._registry = Registry(options)
        self._last = self._registry.add(
            Gauge("kubernetes_healthcheck", STABLE, "Whether a health check passed last, 1 or 0.", "name type")
        )
        self._all = self._registry.add(
            Counter(
                "kubernetes_healthchecks_total",
                STABLE,
                "How often a health check was made, by result: 'success' or 'error'.",
                "name status type",
            )
        )

    def checked(self, check: str, endpoint: str, passed: bool) -> None:
        """A check was made for `healthz`, `livez` or `readyz`."""
        self._last.set(int(passed), check, endpoint)
        self._all.inc(check, "success" if passed else "error", endpoint)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The page, and its Content-Type."""
        return exposition.render(self._registry.families(), accept)
