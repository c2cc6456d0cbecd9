"""The collection of all metrics."""

from kubestow.config.features import Features
from kubestow.telemetry.build import BuildInfo
from kubestow.telemetry.metrics import exposition
from kubestow.telemetry.metrics.build import add_build_metrics
from kubestow.telemetry.metrics.client import ClientMetrics
from kubestow.telemetry.metrics.health import HealthMetrics
from kubestow.telemetry.metrics.options import MetricOptions
from kubestow.telemetry.metrics.process import add_process_metrics
from kubestow.telemetry.metrics.registry import Registry
from kubestow.telemetry.metrics.reload import ReloadMetrics
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics


class Metrics:
    """All metrics, grouped by the component that updates them, and the page that shows them."""

    def __init__(
        self,
        features: Features = Features(),  # noqa: B008 - frozen
        options: MetricOptions = MetricOptions(),  # noqa: B008 - frozen
        build: BuildInfo = BuildInfo(),  # noqa: B008 - frozen
    ) -> None:
        registry = self.registry = Registry(options)
        self.scheduler = SchedulerMetrics(registry, features)
        self.client = ClientMetrics(registry)
        self.reload = ReloadMetrics(registry)
        self.health = HealthMetrics(options)
        """Served on a separate page."""
        registry.add_own_metrics()
        add_process_metrics(registry)
        add_build_metrics(registry, build, features)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics in the format for an Accept header, and its Content-Type."""
        return exposition.render(self.registry.families(), accept)
