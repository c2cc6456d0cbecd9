"""Token requests for service accounts: the token is bound to the account and, on request, to a pod, secret or node."""

from typing import Any

from kubestow.api.timestamps import format_time
from kubestow.apiserver import errors
from kubestow.apiserver.auth.identities import API_AUDIENCES, Identities
from kubestow.apiserver.objects.writing import new_uid
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.rest import reading
from kubestow.apiserver.rules.causes import invalid
from kubestow.apiserver.store.records import Record
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_EXTRA = "authentication.kubernetes.io/"
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def issue(store: Store, identities: Identities, account: Record, request: Object) -> Object:
    """Return a token request with its status: a new token. Raises ApiError if the request is invalid."""
    metadata, spec = request.get("metadata", {}), request.get("spec", {})
    _require_same_account(metadata, account)
    seconds = spec.get("expirationSeconds", 3600)
    if not 600 <= seconds <= 2**32:
        what = "less than 10 minutes" if seconds < 600 else "larger than 2^32 seconds"
        cause = invalid("spec.expirationSeconds", seconds, f"may not specify a duration {what}")
        raise errors.invalid(_GROUP, _KIND, "", [cause])
    audiences = spec.get("audiences") or list(API_AUDIENCES)
    extra = {"credential-id": f"JTI={new_uid(store.random)}"}
    bound = _bound_object(store, account, spec.get("boundObjectRef"))
    if bound is not None:
        extra |= _extra_values(store, bound)
    keyed = {_EXTRA + key: (value,) for key, value in extra.items()}
    token = identities.issue(account, seconds, tuple(audiences), bound, keyed)
    now = store.clock.now()
    return {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {
            "name": account.name,
            "namespace": account.namespace,
            "uid": account.uid,
            "creationTimestamp": format_time(now),
        },
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": format_time(now + seconds)},
    }


def _require_same_account(metadata: Object, account: Record) -> None:
    """Raise ApiError if a request names another service account than its path."""
    for key, expected in (("name", account.name), ("namespace", account.namespace)):
        given = metadata.get(key) or expected
        if given != expected:
            cause = invalid(f"metadata.{key}", given, f"must match the service account {key} if specified")
            raise errors.invalid(_GROUP, _KIND, account.name, [cause])
    uid = metadata.get("uid") or account.uid
    if uid != account.uid:
        why = f"the UID in the token request ({uid}) does not match the UID of the service account ({account.uid})"
        raise errors.conflict(_GROUP, _KIND, account.name, why)


def _bound_object(store: Store, account: Record, reference: Object | None) -> Record | None:
    """Return the object to which a request binds the token, if any."""
    if reference is None:
        return None
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    kind, name = reference.get("kind", ""), reference.get("name", "")
    if group or kind not in _BOUND:
        raise errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    resource = BY_STORAGE[_BOUND[kind]]
    bound = reading.get(store, resource, account.namespace if resource.namespaced else "", name)
    if kind == "Pod" and bound.object()["spec"].get("serviceAccountName") != account.name:
        raise errors.bad_request(
            f'cannot bind token for serviceaccount "{account.name}" to pod running with different serviceaccount name.'
        )
    uid = reference.get("uid") or bound.uid
    if uid != bound.uid:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record."
        raise errors.conflict("", kind, name, f"{why} The object might have been deleted and then recreated")
    return bound


def _extra_values(store: Store, bound: Record) -> dict[str, str]:
    """Return the extra values of a user by which a bound object is known."""
    if bound.storage == "secrets":
        return {}
    if bound.storage == "nodes":
        return {"node-name": bound.name, "node-uid": bound.uid}
    values = {"pod-name": bound.name, "pod-uid": bound.uid}
    name = bound.object()["spec"].get("nodeName")
    if name:
        node = store.get("nodes", "", name)
        values |= {"node-name": name} | ({"node-uid": node.uid} if node is not None else {})
    return values
