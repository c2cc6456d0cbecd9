"""The metrics scheduler_...: declared here, in one table, and updated where the events happen.

    metrics.schedule_attempts.inc(profile, result)

Label values are passed in the alphabetical order of the labels, as they are declared.
"""

from kubestow.config.features import Features
from kubestow.telemetry.metrics.instruments import (
    ALPHA,
    BETA,
    NO_LEVEL,
    STABLE,
    Counter,
    Gauge,
    Histogram,
    exponential_buckets,
)
from kubestow.telemetry.metrics.registry import Registry

_ATTEMPT = exponential_buckets(0.001, 2, 15)
_POINT = exponential_buckets(0.0001, 2, 12)
_PLUGIN = exponential_buckets(0.00001, 1.5, 20)
_CONDITIONS = exponential_buckets(0.1, 2, 14)
_SHARING = exponential_buckets(0.00001, 2, 12)
_WAIT = exponential_buckets(0.01, 2, 20)
_PREEMPTION = exponential_buckets(0.001, 2, 16)
_VICTIMS = exponential_buckets(1, 2, 11)
_BINDING = ("PreBind", "Bind")
"""Extension points whose plugins wait for the API server, many pods side by side."""


class SchedulerMetrics:
    """The metrics of the scheduler. Plugins may add metrics of their own to `registry`."""

    def __init__(self, registry: Registry | None = None, features: Features = Features()) -> None:  # noqa: B008 - frozen
        self.registry = Registry() if registry is None else registry
        add = self.registry.add
        groups, preempting = features.generic_workload, features.scheduler_async_preemption
        dispatching, conditions = features.scheduler_async_api_calls, features.dra_device_binding_conditions
        placing = features.topology_aware_workload_scheduling
        # A table. Each row: name, stability level, help, buckets of a histogram, labels.
        # fmt: off

        # Attempts
        self.schedule_attempts = add(Counter("scheduler_schedule_attempts_total",
            STABLE, "Number of attempts to schedule a pod, by result: 'scheduled'; 'unschedulable', no node is "
            "feasible; 'error', an internal error.", "profile result"))
        self.scheduling_attempt_seconds = add(Histogram("scheduler_scheduling_attempt_duration_seconds",
            STABLE, "Duration of an attempt to schedule a pod, including the binding.", _ATTEMPT, "profile result"))
        self.scheduling_algorithm_seconds = add(Histogram("scheduler_scheduling_algorithm_duration_seconds",
            BETA, "Time to choose a node.", _ATTEMPT))
        self.pod_scheduling_attempts = add(Histogram("scheduler_pod_scheduling_attempts",
            STABLE, "Number of attempts until a pod was scheduled.", exponential_buckets(1, 2, 5)))
        self.pod_scheduling_sli_seconds = add(Histogram("scheduler_pod_scheduling_sli_duration_seconds",
            BETA, "Time from the first attempt until a pod was scheduled, without the time in which it was gated.",
            _WAIT, "attempts"))
        self.pod_scheduled_after_flush = add(Counter("scheduler_pod_scheduled_after_flush_total",
            ALPHA, "Number of pods scheduled after they were retried by a timeout instead of an event. Indicates wrong "
            "queueing hints."))
        self.podgroup_schedule_attempts = add(Counter("scheduler_podgroup_schedule_attempts_total",
            ALPHA, "Number of attempts to schedule a pod group, by result: 'scheduled'; 'unschedulable', it does not "
            "fit; 'waiting_on_preemption', it fits once other pods are deleted; 'error', an internal error.",
            "profile result"), served=groups)
        self.podgroup_scheduling_attempt_seconds = add(Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds", ALPHA,
            "Duration of an attempt to schedule a pod group.", _ATTEMPT, "profile result"), served=groups)
        self.podgroup_scheduling_algorithm_seconds = add(Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds", ALPHA,
            "Time to choose the nodes of a pod group.", _ATTEMPT), served=groups)
        self.generated_placements = add(Counter("scheduler_generated_placements_total",
            ALPHA, "Number of candidate placements of pod groups.", "profile"), served=placing)
        self.placement_evaluations = add(Counter("scheduler_placement_evaluations_total",
            ALPHA, "Number of placements that were tried for a pod group, by result: 'feasible', the group fits; "
            "'infeasible', it does not.", "profile result"), served=placing)
        self.placement_evaluation_seconds = add(Histogram("scheduler_placement_evaluation_duration_seconds",
            ALPHA, "Time to try a pod group in one placement.", _ATTEMPT, "profile result"), served=placing)
        self.permit_wait_seconds = add(Histogram("scheduler_permit_wait_duration_seconds",
            BETA, "Time that pods waited for Permit plugins.", _ATTEMPT, "result"))
        self.event_handling_seconds = add(Histogram("scheduler_event_handling_duration_seconds",
            ALPHA, "Time to process a change in the cluster.", _POINT, "event"))
        self.cache_size = add(Gauge("scheduler_cache_size",
            ALPHA, "Number of nodes, pods and assumed pods in the cluster state.", "type"))
        self.goroutines = add(Gauge("scheduler_goroutines",
            BETA, "Number of tasks concurrent with the scheduling loop, by operation, such as binding.", "operation"))

        # Plugins
        self.extension_point_seconds = add(Histogram("scheduler_framework_extension_point_duration_seconds",
            STABLE, "Total duration of all plugins of an extension point.",
            _POINT, "extension_point profile status"))
        self.plugin_execution_seconds = add(Histogram("scheduler_plugin_execution_duration_seconds",
            BETA, "Duration of one plugin at an extension point, in a sample of the cycles.",
            _PLUGIN, "extension_point plugin status"))
        self.plugin_evaluations = add(Counter("scheduler_plugin_evaluation_total",
            BETA, "Number of calls of a plugin at PreFilter, Filter, PreScore and Score.",
            "extension_point plugin profile"))
        self.plugin_polls = add(Counter("kubestow_plugin_polls_total",
            NO_LEVEL, "Number of attempts of a plugin to poll a value, by result: 'success' or 'failure'.",
            "plugin result"))
        self.plugin_poll_age = add(Gauge("kubestow_plugin_polled_value_age_seconds",
            NO_LEVEL, "Time since the latest value that a plugin has polled; of several, the oldest.", "plugin"))
        self.plugin_poll_seconds = add(Histogram("kubestow_plugin_poll_duration_seconds",
            NO_LEVEL, "Duration of an attempt of a plugin to poll a value.", _ATTEMPT, "plugin"))
        self.volume_stage_errors = add(Counter("scheduler_volume_scheduling_stage_error_total",
            ALPHA, "Number of failures to find ('predicate'), assume ('assume') or bind ('bind') volumes.",
            "operation"))

        # Devices
        self.resource_claim_creates = add(Counter("dynamic_resource_allocation_resourceclaim_creates_total",
            ALPHA, "Number of attempts to create a resource claim for a pod's extended resources.",
            "admin_access owner_api_group owner_api_kind status"), served=features.dra_extended_resource)
        self.binding_conditions_allocations = add(Counter("scheduler_dra_bindingconditions_allocations_total",
            ALPHA, "Number of devices with binding conditions that a pod waited for.",
            "driver profile status"), served=conditions)
        self.binding_conditions_seconds = add(Histogram("scheduler_dra_bindingconditions_wait_duration_seconds",
            ALPHA, "Time that pods waited for binding conditions of devices.",
            _CONDITIONS, "driver profile status"), served=conditions)

        # The queue
        self.queue_incoming_pods = add(Counter("scheduler_queue_incoming_pods_total",
            STABLE, "Number of pods added to a queue, by the event that caused it.", "event queue"))
        self.queue_incoming_entities = add(Counter("scheduler_queue_incoming_entities_total",
            ALPHA, "Number of pods without a group ('pod') and of groups ('podgroup') that entered a queue other than "
            "the one that queueing hints ask for, by the event that caused it.", "event queue type"))
        self.queueing_hint_seconds = add(Histogram("scheduler_queueing_hint_execution_duration_seconds",
            ALPHA, "Duration of a plugin's queueing hint.", _PLUGIN, "event hint plugin"))
        self.pending_pods = add(Gauge("scheduler_pending_pods",
            STABLE, "Number of pending pods, by queue: 'active', ready to be scheduled; 'backoff', retried after a "
            "delay; 'unschedulable', retried when the cluster changes; 'gated', held back by a PreEnqueue plugin; "
            "'incomplete', its group does not exist; 'pending', its group is being scheduled.",
            "queue"))
        self.queued_entities = add(Gauge("scheduler_queued_entities",
            ALPHA, "Number of pending pods without a group ('pod') and of pending groups ('podgroup'), by queue.",
            "queue type"))
        self.unschedulable_pods = add(Gauge("scheduler_unschedulable_pods",
            BETA, "Number of pending pods that a plugin rejected. A pod counts once for each such plugin: do not add "
            "up the values.", "plugin profile"))
        self.inflight_events = add(Gauge("scheduler_inflight_events",
            ALPHA, "Number of events kept for pods that are being scheduled.", "event"))

        # Sharing among equal pods
        self.batch_attempts = add(Counter("scheduler_batch_attempts_total",
            ALPHA, "Number of pods for which the result of an equal pod was used ('hint_used'), not used "
            "('hint_not_used') or not found ('no_hint').", "profile result"))
        self.batch_cache_flushed = add(Counter("scheduler_batch_cache_flushed_total",
            ALPHA, "Number of times the results of equal pods were discarded, by reason.", "profile reason"))
        self.batch_rescore_attempts = add(Counter("scheduler_batch_rescore_attempts_total",
            ALPHA, "Number of times nodes that have changed were evaluated again for the next equal pod.", "profile"))
        rescoring = self.batch_rescore_seconds = add(Histogram("scheduler_batch_rescore_duration_seconds",
            ALPHA, "Time to evaluate the nodes again that have changed since the previous equal pod.", _SHARING,
            "profile"))
        self.batch_rescore_attempts.watch(lambda: {key: sum(seen.counts) for key, seen in rescoring.read().items()})
        self.get_node_hint_seconds = add(Histogram("scheduler_get_node_hint_duration_seconds",
            ALPHA, "Time to look up the result of an equal pod.", _SHARING, "hinted profile"))
        self.store_schedule_results_seconds = add(Histogram("scheduler_store_schedule_results_duration_seconds",
            ALPHA, "Time to store the result for the next equal pod.", _SHARING, "profile"))

        # Preemption
        self.preemption_attempts = add(Counter("scheduler_preemption_attempts_total",
            STABLE, "Number of preemption attempts."))
        self.preemption_victims = add(Histogram("scheduler_preemption_victims",
            STABLE, "Number of victims of a preemption by a pod.", exponential_buckets(1, 2, 7)))
        self.workload_preemption_attempts = add(Counter("scheduler_workload_preemption_attempts_total",
            ALPHA, "Number of preemption attempts of pod groups.", "result"), served=groups)
        self.workload_preemption_victims = add(Histogram("scheduler_workload_preemption_victims",
            ALPHA, "Number of victims of a preemption by a pod group.", _VICTIMS), served=groups)
        self.preemption_workload_disruptions = add(Histogram("scheduler_preemption_workload_disruptions",
            ALPHA, "Number of disruptions of pod groups by a preemption: one for each victim, or for a whole group if "
            "its pods can only be evicted together.", _VICTIMS, "preemptor"), served=groups)
        self.preemption_evaluation_seconds = add(Histogram("scheduler_preemption_evaluation_duration_seconds",
            ALPHA, "Time to find the victims of a preemption.", _PREEMPTION, "preemptor result"), served=groups)
        self.preemption_execution_seconds = add(Histogram("scheduler_preemption_execution_duration_seconds",
            ALPHA, "Time to evict the victims of a preemption.", _PREEMPTION, "preemptor result"), served=groups)
        self.preemption_budget_violations = add(Counter("scheduler_preemption_pdb_violations_total",
            ALPHA, "Number of violations of pod disruption budgets by preemptions.", "preemptor"), served=groups)
        self.preemption_goroutines = add(Counter("scheduler_preemption_goroutines_execution_total",
            ALPHA, "Number of preemptions executed beside the scheduling loop.", "result"), served=preempting)
        self.preemption_goroutine_seconds = add(Histogram("scheduler_preemption_goroutines_duration_seconds",
            ALPHA, "Duration of a preemption executed beside the scheduling loop.",
            _WAIT, "result"), served=preempting, hidden_since="1.37.0")

        # Calls to the API server
        self.async_api_calls = add(Counter("scheduler_async_api_call_execution_total",
            ALPHA, "Number of executed asynchronous API calls.", "call_type result"), served=dispatching)
        self.async_api_call_seconds = add(Histogram("scheduler_async_api_call_execution_duration_seconds",
            ALPHA, "Duration of asynchronous API calls.", _ATTEMPT, "call_type result"), served=dispatching)
        self.pending_async_api_calls = add(Gauge("scheduler_pending_async_api_calls",
            ALPHA, "Number of asynchronous API calls to be sent.", "call_type"), served=dispatching)
        # fmt: on

    def plugin_seconds(self) -> dict[str, float]:
        """Return the time spent in each plugin during the timed cycles, without the time that bindings wait."""
        spent: dict[str, float] = {}
        for (point, plugin, _status), seen in self.plugin_execution_seconds.read().items():
            if point not in _BINDING:
                spent[plugin] = spent.get(plugin, 0.0) + seen.total
        return spent
