"""Claims as the control plane makes them for pods from templates."""

from kubestow.model.devices import ResourceClaim, ResourceClaimTemplate
from kubestow.model.meta import ObjectMeta, OwnerReference
from kubestow.model.pod import Pod


def claim_made_for(pod: Pod, name: str, template: ResourceClaimTemplate) -> ResourceClaim:
    """The claim that a pod calls so; what the API server makes up of its name is told as such."""
    meta, made = pod.metadata, f"{pod.metadata.name}-{name}-xxxxx"
    owner = OwnerReference("v1", "Pod", meta.name, meta.uid, controller=True)
    uid = f"ResourceClaim/{meta.namespace}/{made}"
    return ResourceClaim(
        metadata=ObjectMeta(made, meta.namespace, uid, ownerReferences=(owner,)), spec=template.spec.spec
    )
