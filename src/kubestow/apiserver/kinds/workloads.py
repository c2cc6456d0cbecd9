"""Kinds that run pods, scale them or limit their disruption: apps, batch, autoscaling, policy."""

from functools import partial

from kubestow.apiserver.kinds import conversions
from kubestow.apiserver.kinds.core import ALL
from kubestow.apiserver.kinds.resource import Resource, Rules, set_status
from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.columns import WORKLOAD, count, joined_at, number_at, pair_at, printed, value_at
from kubestow.apiserver.rules import jobs, names, policy, workloads
from kubestow.apiserver.rules.causes import immutable
from kubestow.apiserver.rules.defaults import fill

_READY = ("Ready", lambda obj: f"{number_at('status.readyReplicas')(obj)}/{number_at('spec.replicas')(obj)}")
_apps = partial(Resource, "apps/v1", generation=True, categories=ALL)
_batch = partial(Resource, "batch/v1", generation=True, categories=ALL)
_autoscalers = partial(
    Resource,
    names="HorizontalPodAutoscaler horizontalpodautoscalers hpa",
    subresources="status",
    categories=ALL,
    rules=Rules(policy.default_autoscaler, set_status(desiredReplicas=0), validate=policy.validate_autoscaler),
    columns=printed(
        ("Reference", pair_at("spec.scaleTargetRef", "kind", "name")),
        ("Targets", cells.scale_targets),
        ("MinPods", value_at("spec.minReplicas", none="<unset>")),
        ("MaxPods", "spec.maxReplicas"),
        ("Replicas", number_at("status.currentReplicas")),
    ),
)

_KEEP_SELECTOR = immutable("selector", of="spec")

KINDS = (
    _apps(
        "ReplicaSet replicasets rs",
        "status scale",
        selectable="status.replicas",
        rules=Rules(
            workloads.default_replicas,
            set_status(replicas=0),
            validate=workloads.validate_workload,
            validate_update=_KEEP_SELECTOR,
        ),
        columns=printed(
            ("Desired", number_at("spec.replicas")),
            ("Current", number_at("status.replicas")),
            ("Ready", number_at("status.readyReplicas")),
            wide=WORKLOAD,
        ),
    ),
    _apps(
        "Deployment deployments deploy",
        "status scale",
        rules=Rules(
            workloads.default_deployment,
            set_status(),
            validate=workloads.validate_deployment,
            validate_update=_KEEP_SELECTOR,
        ),
        columns=printed(
            _READY,
            ("Up-to-date", number_at("status.updatedReplicas")),
            ("Available", number_at("status.availableReplicas")),
            wide=WORKLOAD,
        ),
        kept_with_status=("labels",),
    ),
    _apps(
        "StatefulSet statefulsets sts",
        "status scale",
        rules=Rules(
            workloads.default_stateful_set,
            set_status(replicas=0, availableReplicas=0),
            validate=workloads.validate_stateful_set,
            validate_update=workloads.validate_stateful_set_update,
            valid_name=names.dns_label,
        ),
        columns=printed(_READY, wide=WORKLOAD[:2]),
    ),
    _apps(
        "DaemonSet daemonsets ds",
        "status",
        rules=Rules(
            workloads.default_daemon_set,
            set_status(currentNumberScheduled=0, numberMisscheduled=0, desiredNumberScheduled=0, numberReady=0),
            validate=workloads.validate_daemon_set,
            validate_update=_KEEP_SELECTOR,
        ),
        columns=printed(
            ("Desired", number_at("status.desiredNumberScheduled")),
            ("Current", number_at("status.currentNumberScheduled")),
            ("Ready", number_at("status.numberReady")),
            ("Up-to-date", number_at("status.updatedNumberScheduled")),
            ("Available", number_at("status.numberAvailable")),
            ("Node Selector", lambda obj: cells.plain_selector(value_at("spec.template.spec.nodeSelector", {})(obj))),
            wide=WORKLOAD,
        ),
    ),
    Resource(
        "apps/v1",
        "ControllerRevision controllerrevisions",
        columns=printed(("Controller", cells.controller), ("Revision", number_at("revision"))),
    ),
    _batch(
        "Job jobs",
        "status",
        selectable="status.successful=status.succeeded",
        rules=Rules(
            jobs.default_job,
            set_status(),
            complete=jobs.select_own_pods,
            validate=jobs.validate_job,
            validate_update=jobs.validate_job_update,
            drop_disabled_fields=jobs.drop_disabled_fields,
        ),
        columns=printed(
            ("Status", cells.job_status),
            ("Completions", cells.job_completions),
            ("Duration", cells.job_duration),
            wide=WORKLOAD,
        ),
    ),
    _batch(
        "CronJob cronjobs cj",
        "status",
        rules=Rules(
            jobs.default_cron_job,
            set_status(),
            validate=jobs.validate_cron_job,
            drop_disabled_fields=jobs.drop_disabled_fields,
        ),
        columns=printed(
            ("Schedule", "spec.schedule"),
            ("Timezone", "spec.timeZone"),
            ("Suspend", lambda obj: str(bool(obj.get("spec", {}).get("suspend")))),
            ("Active", count("status.active")),
            ("Last Schedule", cells.last_schedule),
            wide=(
                ("Containers", joined_at("spec.jobTemplate.spec.template.spec.containers", "name")),
                ("Images", joined_at("spec.jobTemplate.spec.template.spec.containers", "image")),
                ("Selector", lambda obj: cells.selector(value_at("spec.jobTemplate.spec.selector", {})(obj))),
            ),
        ),
    ),
    _autoscalers("autoscaling/v2"),
    _autoscalers(
        "autoscaling/v1", storage="horizontalpodautoscalers.autoscaling", conversion=conversions.OLD_AUTOSCALERS
    ),
    Resource(
        "policy/v1",
        "PodDisruptionBudget poddisruptionbudgets pdb",
        "status",
        generation=True,
        rules=Rules(
            fill(spec={}),
            set_status(disruptionsAllowed=0, currentHealthy=0, desiredHealthy=0, expectedPods=0),
            validate=policy.validate_budget,
        ),
        columns=printed(
            ("Min Available", value_at("spec.minAvailable", none="N/A")),
            ("Max Unavailable", value_at("spec.maxUnavailable", none="N/A")),
            ("Allowed Disruptions", number_at("status.disruptionsAllowed")),
        ),
    ),
)
