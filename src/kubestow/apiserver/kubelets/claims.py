"""The claims of a pod, as its kubelet sees them: the pod starts once each has its devices and is reserved for it."""

from collections.abc import Iterator

from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.store.records import Record

CLAIMS = "resourceclaims.resource.k8s.io"


def has_claims(pod: Record) -> bool:
    """Whether it uses devices, told without decoding it."""
    return b'"resourceClaims":[' in pod.body or b'"extendedResourceClaimStatus":{' in pod.body


def trouble(pod: Object, api: Api) -> str:
    """Why the devices of a pod cannot be prepared; empty if they can."""
    metadata = pod["metadata"]
    for name in _names(pod):
        if name is None:
            return "a ResourceClaim of the pod has not been created yet"
        told = f"ResourceClaim {metadata['namespace']}/{name}"
        claim = api.read(CLAIMS, metadata["namespace"], name)
        if claim is None:
            return f"{told} not found"
        status = claim.get("status", {})
        if "allocation" not in status:
            return f"{told} is not allocated"
        if all(one["uid"] != metadata["uid"] for one in status.get("reservedFor", ())):
            return f"{told} is not reserved for the pod"
    return ""


def _names(pod: Object) -> Iterator[str | None]:
    """The names of its claims; None for one that is still to be made from a template."""
    status = pod.get("status", {})
    made = {one["name"]: one for one in status.get("resourceClaimStatuses", ())}
    for one in pod["spec"].get("resourceClaims", ()):
        if one.get("resourceClaimName"):
            yield one["resourceClaimName"]
        elif one["name"] not in made:
            yield None
        elif made[one["name"]].get("resourceClaimName"):  # else the pod needs none
            yield made[one["name"]]["resourceClaimName"]
    if "extendedResourceClaimStatus" in status:
        yield status["extendedResourceClaimStatus"]["resourceClaimName"]
