"""Which rules hold for which resource."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules import names, others, pods
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
    "nodes": Rules(others.default_node, _nothing, validate=others.validate_node),
    "namespaces": Rules(others.default_namespace, others.prepare_namespace, valid_name=names.is_dns_label),
    "services": Rules(
        others.default_service,
        others.prepare_service,
        others.admit_service,
        prepare_update=others.keep_cluster_ip,
        valid_name=names.is_service_name,
    ),
    "secrets": Rules(others.default_secret),
    "persistentvolumes": Rules(others.default_volume, others.prepare_volume, validate=others.validate_volume),
    "persistentvolumeclaims": Rules(
        others.default_claim,
        lambda obj: obj.update(status={"phase": "Pending"}),
        others.admit_claim,
        others.validate_claim,
    ),
    "replicationcontrollers": Rules(others.default_replication_controller, validate=others.validate_workload),
    "replicasets.apps": Rules(
        others.default_replicas, validate=others.validate_workload, validate_update=others.keep_selector
    ),
    "deployments.apps": Rules(
        others.default_deployment, validate=others.validate_deployment, validate_update=others.keep_selector
    ),
    "statefulsets.apps": Rules(
        others.default_stateful_set, validate=others.validate_workload, validate_update=others.keep_selector
    ),
    "daemonsets.apps": Rules(
        others.default_daemon_set, validate=others.validate_workload, validate_update=others.keep_selector
    ),
    "jobs.batch": Rules(
        others.default_job,
        admit=others.admit_job,
        validate=others.validate_job,
        validate_update=others.validate_job_update,
    ),
    "poddisruptionbudgets.policy": Rules(others.default_budget, validate=others.validate_budget),
    "priorityclasses.scheduling.k8s.io": Rules(
        others.default_priority_class,
        validate=others.validate_priority_class,
        validate_update=others.keep_priority,
    ),
    "storageclasses.storage.k8s.io": Rules(others.default_storage_class),
    "events": Rules(prepare_create=_nothing, valid_name=names.is_path_segment),
}
"""Rules by storage; resources that are not here have only those of their schema."""

_PLAIN = Rules()


def rules_of(storage: str) -> Rules:
    """The rules of a resource."""
    return RULES.get(storage, _PLAIN)
