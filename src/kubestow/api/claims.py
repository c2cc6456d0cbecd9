"""Persistent volumes and claims: their storage class, their owner, their binding.

The rules that the volume plugins share; they read the objects alone, not the state of the cluster.
"""

from collections.abc import Iterator

from kubestow.api.meta import controller_of
from kubestow.api.pod import Pod, Volume
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding is finished; the value does not matter."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume that a controller, not a user, has bound to its claim."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node for which a volume is to be provisioned."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes are created manually."""
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the name of the storage class that a claim requests; "" for none."""
    annotated = claim.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storageClassName or ""


def volume_class(volume: PersistentVolume) -> str:
    """Return the name of the storage class of a volume; "" for none."""
    annotated = volume.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storageClassName


def claim_name_of(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a pod's volume: given, or generated for a generic ephemeral volume."""
    if volume.persistentVolumeClaim is not None:
        return volume.persistentVolumeClaim.claimName
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_names_of(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims behind all of a pod's volumes."""
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        if name is not None:
            yield name


def named_claims(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims that a pod's volumes name; without those of ephemeral volumes."""
    for volume in pod.spec.volumes:
        if volume.persistentVolumeClaim is not None:
            yield volume.persistentVolumeClaim.claimName


def ownership_problem(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Return why a claim is not the one created for an ephemeral volume of the pod; None if it is."""
    owner = controller_of(claim.metadata)
    if claim.metadata.namespace == pod.metadata.namespace and owner is not None and owner.uid == pod.metadata.uid:
        return None
    key = f"{claim.metadata.namespace}/{claim.metadata.name}"
    return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim has its volume and its binding is finished."""
    return bool(claim.spec.volumeName) and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume is reserved for a claim: by name, and by UID if the reference has one."""
    reference = volume.spec.claimRef
    return (
        reference is not None
        and reference.name == claim.metadata.name
        and reference.namespace == claim.metadata.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


def not_found(claim_name: str) -> str:
    """Return the message about a claim that does not exist."""
    return f'persistentvolumeclaim "{claim_name}" not found'
