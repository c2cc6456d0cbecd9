"""The owner of a pod, as users know it: the Deployment behind a ReplicaSet, the pod group, or the pod itself."""

from typing import NamedTuple, Self
from urllib.parse import quote

from kubestow.api.meta import OwnerReference, controller_of
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_name
from kubestow.scheduler.cluster.listers import Listers

_HASH = "pod-template-hash"
_KINDS = {
    "Deployment": ("deployment", "deployments", "deploy", "deployments.apps", "deployment.apps"),
    "ReplicaSet": ("replicaset", "replicasets", "rs", "replicasets.apps", "replicaset.apps"),
    "StatefulSet": ("statefulset", "statefulsets", "sts", "statefulsets.apps", "statefulset.apps"),
    "DaemonSet": ("daemonset", "daemonsets", "ds", "daemonsets.apps", "daemonset.apps"),
    "Job": ("job", "jobs", "jobs.batch", "job.batch"),
    "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
}
_GROUPS = {"Job": "apis/batch/v1", "ReplicationController": "api/v1"}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}


class Owner(NamedTuple):
    """The object to change in order to change its pods."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, pod: Pod, listers: Listers) -> Self:
        """Return the owner of a pod."""
        namespace, reference = pod.metadata.namespace, controller_of(pod.metadata)
        if reference is None:
            group = group_name(pod)
            return cls("PodGroup", namespace, group) if group else cls("Pod", namespace, pod.metadata.name)
        if reference.kind == "ReplicaSet":
            deployment = _deployment(pod, reference, listers)
            if deployment:
                return cls("Deployment", namespace, deployment)
        return cls(reference.kind, namespace, reference.name)

    @property
    def text(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def _deployment(pod: Pod, reference: OwnerReference, listers: Listers) -> str:
    """Return the name of the Deployment of a ReplicaSet; empty if it has none."""
    found = listers.replica_sets.get(f"{pod.metadata.namespace}/{reference.name}")
    if found is not None:
        owner = controller_of(found.metadata)
        return owner.name if owner is not None and owner.kind == "Deployment" else ""
    template = pod.metadata.labels.get(_HASH)
    suffix = f"-{template}"
    return reference.name.removesuffix(suffix) if template and reference.name.endswith(suffix) else ""


def path_of_owners(kind: str, namespace: str) -> str:
    """Return the path of the API at which owners of a kind are listed; an empty namespace stands for all."""
    where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"/{_GROUPS.get(kind, 'apis/apps/v1')}{where}/{_KINDS[kind][1]}"


def owner_kind(name: str) -> str:
    """Return the kind that a command line names; empty if it is not one that owns pods."""
    return _KIND_OF.get(name.lower(), "")
