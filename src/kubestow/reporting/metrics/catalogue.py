"""All metrics there are."""

import time
from collections.abc import Callable

from kubestow.config.features import Features
from kubestow.reporting.build import BuildInfo
from kubestow.reporting.metrics import exposition
from kubestow.reporting.metrics.api_calls import ApiCallMetrics
from kubestow.reporting.metrics.batching import BatchMetrics
from kubestow.reporting.metrics.build import add_build_metrics
from kubestow.reporting.metrics.claims import DeviceMetrics, VolumeMetrics
from kubestow.reporting.metrics.client import CredentialMetrics, RequestMetrics, TransportMetrics
from kubestow.reporting.metrics.election import ElectionMetrics
from kubestow.reporting.metrics.framework import FrameworkMetrics
from kubestow.reporting.metrics.health import HealthMetrics
from kubestow.reporting.metrics.options import MetricOptions
from kubestow.reporting.metrics.pod_groups import PodGroupMetrics
from kubestow.reporting.metrics.process import add_process_metrics
from kubestow.reporting.metrics.queueing import QueueMetrics
from kubestow.reporting.metrics.registry import Registry
from kubestow.reporting.metrics.scheduling import SchedulerMetrics
from kubestow.reporting.metrics.workqueues import WorkqueueMetrics


class Metrics:
    """The parts, each for whom it concerns, and the page they make."""

    def __init__(
        self,
        features: Features = Features(),  # noqa: B008 - frozen
        options: MetricOptions = MetricOptions(),  # noqa: B008 - frozen
        build: BuildInfo = BuildInfo(),  # noqa: B008 - frozen
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        registry = self.registry = Registry(options)
        """Plugins may add metrics of their own here."""
        self.scheduler = SchedulerMetrics(registry, features)
        self.framework = FrameworkMetrics(registry)
        self.queue = QueueMetrics(registry)
        self.batching = BatchMetrics(registry)
        self.pod_groups = PodGroupMetrics(registry, features)
        self.volumes = VolumeMetrics(registry)
        self.devices = DeviceMetrics(registry, features)
        self.api_calls = ApiCallMetrics(registry, features)
        self.requests = RequestMetrics(registry)
        self.credentials = CredentialMetrics(registry, monotonic)
        self.transports = TransportMetrics(registry)
        self.election = ElectionMetrics(registry)
        self.workqueues = WorkqueueMetrics(registry)
        self.health = HealthMetrics(options)
        """Has a page of its own."""
        registry.add_own_metrics()
        add_process_metrics(registry)
        add_build_metrics(registry, build, features)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics in the format that an Accept header prefers, and the Content-Type of that."""
        return exposition.render(self.registry.families(), accept)
