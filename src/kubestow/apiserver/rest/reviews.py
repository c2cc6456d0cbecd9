"""Token, subject and access reviews: evaluated on request, never stored."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.auth.identities import API_AUDIENCES, Identities
from kubestow.apiserver.auth.policy import Attempt, Authorizer
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import User
from kubestow.apiserver.rules.causes import invalid
from kubestow.apiserver.rules.names import INVALID

Object = dict[str, Any]


def answer(
    resource: Resource, review: Object, user: User, identities: Identities, authorizer: Authorizer, now: str
) -> Object:
    """Return the review with its status filled in."""
    kind = resource.kind
    spec: Object = review.get("spec", {})
    review["apiVersion"], review["kind"] = resource.api_version, kind
    review.setdefault("metadata", {})["creationTimestamp"] = None
    if kind == "TokenReview":
        review["status"] = _token_status(spec, identities)
    elif kind == "SelfSubjectReview":
        review["metadata"]["creationTimestamp"] = now
        review["status"] = {"userInfo": user.info()}
    elif kind == "SelfSubjectRulesReview":
        rules = authorizer.rules_for(user, spec.get("namespace", ""))
        review["status"] = {
            "resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
    else:
        subject = user
        if kind != "SelfSubjectAccessReview":
            subject = User(spec.get("user", ""), tuple(spec.get("groups", ())))
        review["status"] = {"allowed": authorizer.allowed(subject, _attempt(spec))}
    return review


def validate(kind: str, review: Object, namespace: str) -> Iterator[Cause]:
    """Validate an access review. That of a namespace must not reveal permissions in other namespaces."""
    if not kind.endswith("AccessReview"):
        return
    spec = review.get("spec", {})
    wanted, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (wanted is None) == (other is None):
        message = "Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield "spec", INVALID, message
    if not kind.startswith("Self") and not spec.get("user") and not spec.get("groups"):
        yield invalid("spec.user", "", "at least one of user or group must be specified")
    if kind == "LocalSubjectAccessReview":
        if wanted is not None and wanted.get("namespace", "") != namespace:
            given = wanted.get("namespace", "")
            yield invalid("spec.resourceAttributes.namespace", given, "must match metadata.namespace")
        if other is not None:
            yield "spec.nonResourceAttributes", INVALID, "Invalid value: disallowed on this kind of request"


def _attempt(spec: Object) -> Attempt:
    wanted = spec.get("resourceAttributes")
    if wanted is None:
        other = spec.get("nonResourceAttributes", {})
        return Attempt(other.get("verb", ""), "", other.get("path", ""))
    name = wanted.get("resource", "")
    if wanted.get("subresource"):
        name = f"{name}/{wanted['subresource']}"
    group, namespace = wanted.get("group", ""), wanted.get("namespace", "")
    return Attempt(wanted.get("verb", ""), name or "*", "", group, namespace, wanted.get("name", ""))


def _token_status(spec: Object, identities: Identities) -> Object:
    found = identities.by_token(str(spec.get("token", "")).encode(), spec.get("audiences") or API_AUDIENCES)
    if found is None:
        return {"user": {}, "authenticated": False, "error": "the token is unknown, expired or for another audience"}
    return {"authenticated": True, "user": found.user.info(), "audiences": list(found.audiences)}
