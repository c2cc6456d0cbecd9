"""Resource claims from templates, as the control plane creates them for pods."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from kubestow.api.devices import ResourceClaim, ResourceClaimTemplate
from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.pod import Pod, PodResourceClaimStatus


def with_claims(pod: Pod, templates: Mapping[str, ResourceClaimTemplate], add: Callable[[ResourceClaim], Any]) -> Pod:
    """Return a pod whose status names its claims; `add` is called with each claim created from a template.

    The keys of `templates` are namespace/name.
    """
    names = {one.name: one for one in pod.status.resourceClaimStatuses}
    for wanted in pod.spec.resourceClaims:
        template = templates.get(f"{pod.metadata.namespace}/{wanted.resourceClaimTemplateName}")
        if template is not None and wanted.name not in names:
            claim = _new_claim(pod, wanted.name, template)
            add(claim)
            names[wanted.name] = PodResourceClaimStatus(wanted.name, claim.metadata.name)
    return replace(pod, status=replace(pod.status, resourceClaimStatuses=tuple(names.values()))) if names else pod


def _new_claim(pod: Pod, name: str, template: ResourceClaimTemplate) -> ResourceClaim:
    """Return the claim that a pod calls `name`; a fixed suffix stands for the one that the API server generates."""
    meta, made = pod.metadata, f"{pod.metadata.name}-{name}-xxxxx"
    owner = OwnerReference("v1", "Pod", meta.name, meta.uid, controller=True)
    uid = f"ResourceClaim/{meta.namespace}/{made}"
    return ResourceClaim(
        metadata=ObjectMeta(made, meta.namespace, uid, ownerReferences=(owner,)), spec=template.spec.spec
    )
