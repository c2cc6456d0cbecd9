"""The metrics scheduler_...: declared here, in one table, and updated where the counted things happen.

    metrics.schedule_attempts.inc(profile, result)

Label values are given in the alphabetical order of the labels, as they are declared.
"""

from kubestow.config.features import Features
from kubestow.telemetry.metrics.instruments import ALPHA, BETA, STABLE, Counter, Gauge, Histogram, exponential_buckets
from kubestow.telemetry.metrics.registry import Registry

_ATTEMPT = exponential_buckets(0.001, 2, 15)
_POINT = exponential_buckets(0.0001, 2, 12)
_PLUGIN = exponential_buckets(0.00001, 1.5, 20)
_CONDITIONS = exponential_buckets(0.1, 2, 14)
_SHARING = exponential_buckets(0.00001, 2, 12)
_WAIT = exponential_buckets(0.01, 2, 20)


class SchedulerMetrics:
    """The metrics of the scheduler. Plugins may add metrics of their own to `registry`."""

    def __init__(self, registry: Registry | None = None, features: Features = Features()) -> None:  # noqa: B008 - frozen
        self.registry = Registry() if registry is None else registry
        add = self.registry.add
        groups, preempting = features.generic_workload, features.scheduler_async_preemption
        dispatching, conditions = features.scheduler_async_api_calls, features.dra_device_binding_conditions
        # A table. Each row: name, stability level, help, buckets of a histogram, labels.
        # fmt: off

        # Attempts
        self.schedule_attempts = add(Counter("scheduler_schedule_attempts_total",
            STABLE, "How often a pod was tried, by result: 'scheduled'; 'unschedulable', no node would take it; "
            "'error', something went wrong inside.", "profile result"))
        self.scheduling_attempt_seconds = add(Histogram("scheduler_scheduling_attempt_duration_seconds",
            STABLE, "How long it took to try a pod, deciding and binding together.", _ATTEMPT, "profile result"))
        self.scheduling_algorithm_seconds = add(Histogram("scheduler_scheduling_algorithm_duration_seconds",
            ALPHA, "How long it took to choose a node.", _ATTEMPT))
        self.pod_scheduling_attempts = add(Histogram("scheduler_pod_scheduling_attempts",
            STABLE, "How many attempts a pod needed until it was scheduled.", exponential_buckets(1, 2, 5)))
        self.pod_scheduling_sli_seconds = add(Histogram("scheduler_pod_scheduling_sli_duration_seconds",
            BETA, "How long a pod needed until it was scheduled, counted from its first attempt, gated time left out.",
            _WAIT, "attempts"))
        self.pod_scheduled_after_flush = add(Counter("scheduler_pod_scheduled_after_flush_total",
            ALPHA, "How many pods were scheduled only since they had waited too long: no event had said that they "
            "would fit. Queueing hints that are wrong show here."))
        self.podgroup_schedule_attempts = add(Counter("scheduler_podgroup_schedule_attempts_total",
            ALPHA, "How often a pod group was tried, by result: 'scheduled'; 'unschedulable', it would not fit; "
            "'waiting_on_preemption', it will once other pods are gone; 'error', something went wrong inside.",
            "profile result"), served=groups)
        self.podgroup_scheduling_attempt_seconds = add(Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds", ALPHA,
            "How long it took to try a pod group.", _ATTEMPT, "profile result"), served=groups)
        self.podgroup_scheduling_algorithm_seconds = add(Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds", ALPHA,
            "How long it took to choose nodes for a pod group.", _ATTEMPT), served=groups)
        self.permit_wait_seconds = add(Histogram("scheduler_permit_wait_duration_seconds",
            BETA, "How long pods waited for permission.", _ATTEMPT, "result"))
        self.event_handling_seconds = add(Histogram("scheduler_event_handling_duration_seconds",
            ALPHA, "How long it took to take in a change in the cluster.", _POINT, "event"))
        self.cache_size = add(Gauge("scheduler_cache_size",
            ALPHA, "How many nodes, pods and assumed pods are known.", "type"))
        self.goroutines = add(Gauge("scheduler_goroutines",
            BETA, "How many tasks run beside the scheduling loop, by what they do, such as binding.", "operation"))

        # Plugins
        self.extension_point_seconds = add(Histogram("scheduler_framework_extension_point_duration_seconds",
            STABLE, "How long all plugins of an extension point took together.",
            _POINT, "extension_point profile status"))
        self.plugin_execution_seconds = add(Histogram("scheduler_plugin_execution_duration_seconds",
            ALPHA, "How long one plugin took at an extension point; a sample of the cycles is timed.",
            _PLUGIN, "extension_point plugin status"))
        self.plugin_evaluations = add(Counter("scheduler_plugin_evaluation_total",
            BETA, "How often a plugin was asked, for PreFilter, Filter, PreScore and Score.",
            "extension_point plugin profile"))
        self.volume_stage_errors = add(Counter("scheduler_volume_scheduling_stage_error_total",
            ALPHA, "How often finding ('predicate'), assuming ('assume') or binding ('bind') volumes failed.",
            "operation"))

        # Devices
        self.resource_claim_creates = add(Counter("scheduler_resourceclaim_creates_total",
            ALPHA, "How often a resource claim was to be created for a pod's extended resources.",
            "status"), served=features.dra_extended_resource)
        self.binding_conditions_allocations = add(Counter("scheduler_dra_bindingconditions_allocations_total",
            ALPHA, "How many devices with binding conditions were waited for.",
            "driver profile status"), served=conditions)
        self.binding_conditions_seconds = add(Histogram("scheduler_dra_bindingconditions_wait_duration_seconds",
            ALPHA, "How long pods waited for binding conditions of devices.",
            _CONDITIONS, "driver profile status"), served=conditions)

        # The queue
        self.queue_incoming_pods = add(Counter("scheduler_queue_incoming_pods_total",
            STABLE, "How many pods came into a queue, by the event that brought them.", "event queue"))
        self.queueing_hint_seconds = add(Histogram("scheduler_queueing_hint_execution_duration_seconds",
            ALPHA, "How long a plugin needed to say whether an event may let a pod in.", _PLUGIN, "event hint plugin"))
        self.pending_pods = add(Gauge("scheduler_pending_pods",
            STABLE, "How many pods wait, by queue: 'active', to be tried next; 'backoff', after a pause; "
            "'unschedulable', until something changes; 'gated', never tried since something holds them back.", "queue"))
        self.unschedulable_pods = add(Gauge("scheduler_unschedulable_pods",
            BETA, "How many waiting pods a plugin has rejected. A pod counts for every plugin that did: do not sum up.",
            "plugin profile"))
        self.inflight_events = add(Gauge("scheduler_inflight_events",
            ALPHA, "How many events are kept for pods that are being scheduled.", "event"))

        # Sharing among equal pods
        self.batch_attempts = add(Counter("scheduler_batch_attempts_total",
            ALPHA, "How often what was known from an equal pod was used ('hint_used'), not used ('hint_not_used'), or "
            "not there ('no_hint').", "profile result"))
        self.batch_cache_flushed = add(Counter("scheduler_batch_cache_flushed_total",
            ALPHA, "How often what was known from equal pods was given up, by reason.", "profile reason"))
        self.get_node_hint_seconds = add(Histogram("scheduler_get_node_hint_duration_seconds",
            ALPHA, "How long it took to look up what is known from an equal pod.", _SHARING, "hinted profile"))
        self.store_schedule_results_seconds = add(Histogram("scheduler_store_schedule_results_duration_seconds",
            ALPHA, "How long it took to keep what was found for the next equal pod.", _SHARING, "profile"))

        # Preemption
        self.preemption_attempts = add(Counter("scheduler_preemption_attempts_total",
            STABLE, "How often preemption was tried."))
        self.preemption_victims = add(Histogram("scheduler_preemption_victims",
            STABLE, "How many victims were chosen at once.", exponential_buckets(1, 2, 7)))
        self.preemption_goroutines = add(Counter("scheduler_preemption_goroutines_execution_total",
            ALPHA, "How many preemptions were carried out beside the scheduling loop.", "result"), served=preempting)
        self.preemption_goroutine_seconds = add(Histogram("scheduler_preemption_goroutines_duration_seconds",
            ALPHA, "How long it took to carry out a preemption beside the scheduling loop.",
            _WAIT, "result"), served=preempting)

        # Calls to the API server
        self.async_api_calls = add(Counter("scheduler_async_api_call_execution_total",
            ALPHA, "How many calls were sent that no cycle waited for.", "call_type result"), served=dispatching)
        self.async_api_call_seconds = add(Histogram("scheduler_async_api_call_execution_duration_seconds",
            ALPHA, "How long calls took that no cycle waited for.", _ATTEMPT, "call_type result"), served=dispatching)
        self.pending_async_api_calls = add(Gauge("scheduler_pending_async_api_calls",
            ALPHA, "How many calls that no cycle waits for are still to be sent.", "call_type"), served=dispatching)
