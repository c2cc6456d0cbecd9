"""Numbers that the core keeps anyway, connected to the metrics that show them when somebody asks."""

from kubestow.plugins.default_preemption import DefaultPreemption
from kubestow.reporting.metrics.catalogue import Metrics
from kubestow.wiring.core import Core


def connect_gauges(metrics: Metrics, core: Core) -> None:
    """From now on the metrics read these numbers where they are kept."""
    metrics.scheduler.watch_cluster(core.cluster)
    metrics.scheduler.watch_tasks(lambda: {"binding": len(core.scheduler.binder)})
    metrics.scheduler.watch_preemptions(lambda: _preemptions_tried(core))
    metrics.queue.watch_queue(core.queue)
    metrics.api_calls.watch_waiting(core.dispatcher.waiting)
    for profile in core.profiles.values():
        metrics.framework.watch_profile(profile)


def _preemptions_tried(core: Core) -> int:
    post_filters = [hook for profile in core.profiles.values() for hook in profile.post_filter]
    return sum(hook.evaluations for hook in post_filters if hook.name == DefaultPreemption.name)
