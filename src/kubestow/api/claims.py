"""Persistent volumes and claims: which class they are of, who they belong to, what binds them.

The facts that the volume plugins share; what is said here holds for the objects alone, whatever the cluster is like.
"""

from collections.abc import Iterator

from kubestow.api.meta import controller_of
from kubestow.api.pod import Pod, Volume
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""On a claim: its binding is finished; the value does not matter."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a volume: its claim was chosen by a machine, not by a person."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: a volume is to be provisioned for this node."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes are made by people."""
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The name of the storage class a claim asks for; "" for none."""
    annotated = claim.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storageClassName or ""


def volume_class(volume: PersistentVolume) -> str:
    """The name of the storage class a volume is of; "" for none."""
    annotated = volume.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storageClassName


def claim_name_of(pod: Pod, volume: Volume) -> str | None:
    """The claim behind a pod's volume: one it names, or the one made for a generic ephemeral volume."""
    if volume.persistentVolumeClaim is not None:
        return volume.persistentVolumeClaim.claimName
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_names_of(pod: Pod) -> Iterator[str]:
    """The claims behind all of a pod's volumes."""
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        if name is not None:
            yield name


def named_claims(pod: Pod) -> Iterator[str]:
    """The claims that a pod's volumes name; ephemeral ones are not among them."""
    for volume in pod.spec.volumes:
        if volume.persistentVolumeClaim is not None:
            yield volume.persistentVolumeClaim.claimName


def ownership_problem(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why a claim is not the one made for an ephemeral volume of the pod; None if it is."""
    owner = controller_of(claim.metadata)
    if claim.metadata.namespace == pod.metadata.namespace and owner is not None and owner.uid == pod.metadata.uid:
        return None
    key = f"{claim.metadata.namespace}/{claim.metadata.name}"
    return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim has its volume, and nothing remains to be done about it."""
    return bool(claim.spec.volumeName) and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is kept for a claim: by name, and by uid if that was said."""
    reference = volume.spec.claimRef
    return (
        reference is not None
        and reference.name == claim.metadata.name
        and reference.namespace == claim.metadata.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


def not_found(claim_name: str) -> str:
    """What is said about a claim that does not exist."""
    return f'persistentvolumeclaim "{claim_name}" not found'
