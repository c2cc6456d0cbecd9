"""Token, subject and access reviews: evaluated on request, never stored."""

from typing import Any

from kubestow.apiserver.auth.identities import API_AUDIENCES, Identities
from kubestow.apiserver.auth.policy import Attempt, Authorizer
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import User

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
