"""The claims of a pod, as its kubelet sees them: the pod starts once each has its devices and is reserved for it.

The pod's status then tells which container has which devices. Nothing is ever wrong with those of stand-in nodes.
"""

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


def report(pod: Object, api: Api) -> None:
    """Tells which devices the containers have that name claims of the pod."""
    names = dict(_named(pod))
    containers = {one["name"]: one for one in pod["spec"]["containers"]}
    for told in pod["status"].get("containerStatuses", ()):
        found: Object = {}
        for used in containers[told["name"]].get("resources", {}).get("claims", ()):
            name, request = names.get(used["name"]), used.get("request", "")
            claim = None if name is None else api.read(CLAIMS, pod["metadata"]["namespace"], name)
            devices = [] if claim is None else _devices(claim, request)
            if devices:
                found[f"claim:{used['name']}/{request}" if request else f"claim:{used['name']}"] = devices
        if found:
            told["allocatedResourcesStatus"] = [{"name": name, "resources": found[name]} for name in found]


def _devices(claim: Object, request: str) -> list[Object]:
    """Those of a request, or all; a device of which a claim has several shares once."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    of = request.partition("/")[0]
    ids = [
        f"{one['driver']}/{one['pool']}/{one['device']}"
        for one in results
        if not request or one["request"].partition("/")[0] == of
    ]
    return [{"resourceID": one, "health": "Healthy"} for one in dict.fromkeys(ids)]


def _names(pod: Object) -> Iterator[str | None]:
    """The names of its claims; None for one that is still to be made from a template."""
    for _, name in _named(pod):
        yield name
    status = pod.get("status", {})
    if "extendedResourceClaimStatus" in status:
        yield status["extendedResourceClaimStatus"]["resourceClaimName"]


def _named(pod: Object) -> Iterator[tuple[str, str | None]]:
    """The same of those in its spec, each with what the pod calls it."""
    made = {one["name"]: one for one in pod.get("status", {}).get("resourceClaimStatuses", ())}
    for one in pod["spec"].get("resourceClaims", ()):
        if one.get("resourceClaimName"):
            yield one["name"], one["resourceClaimName"]
        elif one["name"] not in made:
            yield one["name"], None
        elif made[one["name"]].get("resourceClaimName"):  # else the pod needs none
            yield one["name"], made[one["name"]]["resourceClaimName"]
