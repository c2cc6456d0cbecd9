"""The resource claims of a pod: it starts once all of them are allocated and reserved for it.

The status of the pod then lists the devices of each container. Devices of simulated nodes are always healthy.
"""

from collections.abc import Iterator

from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.controllers.claims import is_reserved_for
from kubestow.apiserver.store.records import Record

CLAIMS = "resourceclaims.resource.k8s.io"


def has_claims(pod: Record) -> bool:
    """Return whether a pod uses resource claims. Does not decode the pod."""
    return b'"resourceClaims":[' in pod.body or b'"extendedResourceClaimStatus":{' in pod.body


def preparation_error(pod: Object, api: Api) -> str:
    """Return the reason why the devices of a pod cannot be prepared; empty if they can."""
    metadata = pod["metadata"]
    for name in _names(pod):
        if name is None:
            return "a ResourceClaim of the pod has not been created yet"
        where = f"ResourceClaim {metadata['namespace']}/{name}"
        claim = api.read(CLAIMS, metadata["namespace"], name)
        if claim is None:
            return f"{where} not found"
        status = claim.get("status", {})
        if "allocation" not in status:
            return f"{where} is not allocated"
        if not is_reserved_for(status, pod):
            return f"{where} is not reserved for the pod"
    return ""


def report(pod: Object, api: Api) -> None:
    """Write the devices of each container into its status."""
    names = dict(_named(pod))
    containers = {one["name"]: one for one in pod["spec"]["containers"]}
    for status in pod["status"].get("containerStatuses", ()):
        found: Object = {}
        for used in containers[status["name"]].get("resources", {}).get("claims", ()):
            name, request = names.get(used["name"]), used.get("request", "")
            claim = None if name is None else api.read(CLAIMS, pod["metadata"]["namespace"], name)
            devices = [] if claim is None else _devices(claim, request)
            if devices:
                found[f"claim:{used['name']}/{request}" if request else f"claim:{used['name']}"] = devices
        if found:
            status["allocatedResourcesStatus"] = [{"name": name, "resources": found[name]} for name in found]


def _devices(claim: Object, request: str) -> list[Object]:
    """Return the devices of a request, or all; a device with several shares in a claim is listed once."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    main = request.partition("/")[0]
    ids = [
        f"{one['driver']}/{one['pool']}/{one['device']}"
        for one in results
        if not request or one["request"].partition("/")[0] == main
    ]
    return [{"resourceID": one, "health": "Healthy"} for one in dict.fromkeys(ids)]


def _names(pod: Object) -> Iterator[str | None]:
    """Yield the names of all claims of a pod; None for one that is not created from its template yet."""
    for _, name in _named(pod):
        yield name
    status = pod.get("status", {})
    if "extendedResourceClaimStatus" in status:
        yield status["extendedResourceClaimStatus"]["resourceClaimName"]


def _named(pod: Object) -> Iterator[tuple[str, str | None]]:
    """Yield the claims in the spec of a pod: the name of the entry, and that of the claim or None."""
    created = {one["name"]: one for one in pod.get("status", {}).get("resourceClaimStatuses", ())}
    for one in pod["spec"].get("resourceClaims", ()):
        if one.get("resourceClaimName"):
            yield one["name"], one["resourceClaimName"]
        elif one["name"] not in created:
            yield one["name"], None
        elif created[one["name"]].get("resourceClaimName"):  # without a name, the pod needs no claim
            yield one["name"], created[one["name"]]["resourceClaimName"]
