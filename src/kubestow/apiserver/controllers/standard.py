"""The controllers of a control plane, by their names in kube-controller-manager."""

from collections.abc import Callable

from kubestow.apiserver.controllers import protection
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.budgets import Budgets
from kubestow.apiserver.controllers.claims import ResourceClaims
from kubestow.apiserver.controllers.cronjobs import CronJobs
from kubestow.apiserver.controllers.daemonsets import DaemonSets
from kubestow.apiserver.controllers.deployments import Deployments
from kubestow.apiserver.controllers.device_taints import DeviceTaintEviction
from kubestow.apiserver.controllers.endpoints import Endpoints, EndpointSliceMirroring, EndpointSlices
from kubestow.apiserver.controllers.garbage import GarbageCollector
from kubestow.apiserver.controllers.jobs import Jobs
from kubestow.apiserver.controllers.namespaces import InEachNamespace, Namespaces
from kubestow.apiserver.controllers.nodes import NodeLifecycle, TaintEviction
from kubestow.apiserver.controllers.podgc import PodGarbageCollector
from kubestow.apiserver.controllers.pods import Pods
from kubestow.apiserver.controllers.policy_types import PolicyTypes
from kubestow.apiserver.controllers.protection import VolumeProtection
from kubestow.apiserver.controllers.queue import Controller
from kubestow.apiserver.controllers.quotas import Quotas
from kubestow.apiserver.controllers.replicasets import ReplicaSets
from kubestow.apiserver.controllers.statefulsets import StatefulSets
from kubestow.apiserver.controllers.ttl import TtlAfterFinished
from kubestow.apiserver.controllers.volumes import EphemeralVolumes, Volumes
from kubestow.config.features import Features


class ControllersError(ValueError):
    """The list of controllers is invalid; the message names the entry."""


def controllers(pods: Pods, authority: str, wanted: str = "*", features: Features = Features()) -> list[Controller]:  # noqa: B008 - frozen
    """Create the controllers of a list such as `*,-job-controller`.

    `*` selects all, a name one, `-` with a name excludes one, `none` selects none. Raises ControllersError.
    """
    api: Api = pods.api
    root = ("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": authority}})
    known: dict[str, Callable[[], Controller]] = {
        "namespace-controller": lambda: Namespaces(api),
        "serviceaccount-controller": lambda: InEachNamespace(api, "serviceaccounts", "default", {}),
        "root-ca-certificate-publisher-controller": lambda: InEachNamespace(api, *root),
        "garbage-collector-controller": lambda: GarbageCollector(api),
        "replicaset-controller": lambda: ReplicaSets(pods),
        "replicationcontroller-controller": lambda: ReplicaSets(pods, "replicationcontrollers"),
        "deployment-controller": lambda: Deployments(api),
        "statefulset-controller": lambda: StatefulSets(pods),
        "daemonset-controller": lambda: DaemonSets(pods, features),
        "job-controller": lambda: Jobs(pods, in_groups=features.workload_with_job),
        "ttl-after-finished-controller": lambda: TtlAfterFinished(api),
        "cronjob-controller": lambda: CronJobs(api),
        "disruption-controller": lambda: Budgets(pods),
        "resourcequota-controller": lambda: Quotas(api),
        "node-lifecycle-controller": lambda: NodeLifecycle(pods),
        "taint-eviction-controller": lambda: TaintEviction(pods, features),
        "device-taint-eviction-controller": lambda: DeviceTaintEviction(pods, features),
        "pod-garbage-collector-controller": lambda: PodGarbageCollector(pods),
        "persistentvolume-binder-controller": lambda: Volumes(api),
        "resourceclaim-controller": lambda: ResourceClaims(api, for_groups=features.dra_workload_resource_claims),
        "endpointslice-controller": lambda: EndpointSlices(pods),
        "endpoints-controller": lambda: Endpoints(pods),
        "endpointslice-mirroring-controller": lambda: EndpointSliceMirroring(api),
        "podgroup-protection-controller": lambda: protection.pod_groups(api),
        "persistentvolumeclaim-protection-controller": lambda: protection.volume_claims(api),
        "persistentvolume-protection-controller": lambda: VolumeProtection(api),
        "validatingadmissionpolicy-status-controller": lambda: PolicyTypes(api),
        "ephemeral-volume-controller": lambda: EphemeralVolumes(api),
    }
    for entry in _entries(wanted):
        if entry != "*" and entry.removeprefix("-") not in known:
            raise ControllersError(
                f"--controllers: {entry.removeprefix('-')!r} is not in the list of known controllers; "
                f"use none, * or some of {', '.join(known)}"
            )
    return [make() for name, make in known.items() if is_chosen(name, wanted)]


def is_chosen(name: str, wanted: str) -> bool:
    """Return whether a list of controllers selects a controller."""
    entries = _entries(wanted)
    return f"-{name}" not in entries and ("*" in entries or name in entries)


def _entries(wanted: str) -> list[str]:
    entries = [entry.strip() for entry in wanted.split(",")]
    return [] if entries == ["none"] else entries
