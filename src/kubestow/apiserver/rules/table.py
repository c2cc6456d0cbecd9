"""Which rules hold for which resource."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules import cluster, devices, names, pods, policy, storage, workloads
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]


def _nothing(_: Object) -> None:
    return None


def _no_complaint(_: Object) -> Iterator[Cause]:
    return iter(())


def _no_objection(_new: Object, _old: Object) -> Iterator[Cause]:
    return iter(())


def _drop_status(obj: Object) -> None:
    obj.pop("status", None)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one resource."""

    default: Callable[[Object], None] = _nothing
    prepare_create: Callable[[Object], None] = _drop_status
    admit: Callable[[Object, Store], None] = lambda _obj, _store: None
    validate: Callable[[Object], Iterator[Cause]] = _no_complaint
    prepare_update: Callable[[Object, Object], None] = lambda _new, _old: None
    validate_update: Callable[[Object, Object], Iterator[Cause]] = _no_objection
    valid_name: Callable[[str], bool] = names.is_dns_subdomain


RULES: dict[str, Rules] = {
    "pods": Rules(pods.default, pods.prepare_create, pods.admit, pods.validate, validate_update=pods.validate_update),
    # A node brings its status along: it is the node itself that registers.
    "nodes": Rules(cluster.default_node, _nothing, validate=cluster.validate_node),
    "namespaces": Rules(cluster.default_namespace, cluster.prepare_namespace, valid_name=names.is_dns_label),
    "services": Rules(
        cluster.default_service,
        cluster.prepare_service,
        cluster.admit_service,
        prepare_update=cluster.keep_cluster_ip,
        valid_name=names.is_service_name,
    ),
    "secrets": Rules(cluster.default_secret),
    "persistentvolumes": Rules(storage.default_volume, storage.prepare_volume, validate=storage.validate_volume),
    "persistentvolumeclaims": Rules(
        storage.default_claim,
        lambda obj: obj.update(status={"phase": "Pending"}),
        storage.admit_claim,
        storage.validate_claim,
        validate_update=storage.keep_claim,
    ),
    "replicationcontrollers": Rules(workloads.default_replication_controller, validate=workloads.validate_workload),
    "replicasets.apps": Rules(
        workloads.default_replicas, validate=workloads.validate_workload, validate_update=workloads.keep_selector
    ),
    "deployments.apps": Rules(
        workloads.default_deployment, validate=workloads.validate_deployment, validate_update=workloads.keep_selector
    ),
    "statefulsets.apps": Rules(
        workloads.default_stateful_set, validate=workloads.validate_workload, validate_update=workloads.keep_selector
    ),
    "daemonsets.apps": Rules(
        workloads.default_daemon_set, validate=workloads.validate_workload, validate_update=workloads.keep_selector
    ),
    "jobs.batch": Rules(
        workloads.default_job,
        admit=workloads.admit_job,
        validate=workloads.validate_job,
        validate_update=workloads.validate_job_update,
    ),
    "cronjobs.batch": Rules(workloads.default_cron_job, validate=workloads.validate_cron_job),
    "poddisruptionbudgets.policy": Rules(policy.default_budget, validate=policy.validate_budget),
    "priorityclasses.scheduling.k8s.io": Rules(
        policy.default_priority_class,
        validate=policy.validate_priority_class,
        validate_update=policy.keep_priority,
    ),
    "storageclasses.storage.k8s.io": Rules(storage.default_storage_class, validate_update=storage.keep_storage_class),
    "csidrivers.storage.k8s.io": Rules(storage.default_driver),
    "resourceclaims.resource.k8s.io": Rules(devices.default_claim),
    "resourceclaimtemplates.resource.k8s.io": Rules(devices.default_template),
    "configmaps": Rules(validate=cluster.validate_config_map),
    "leases.coordination.k8s.io": Rules(validate=cluster.validate_lease),
    "events": Rules(prepare_create=_nothing, validate=cluster.validate_event, valid_name=names.is_path_segment),
}
"""Rules by storage; resources that are not here have only those of their schema."""

_PLAIN = Rules()


def rules_of(storage: str) -> Rules:
    """The rules of a resource."""
    return RULES.get(storage, _PLAIN)
