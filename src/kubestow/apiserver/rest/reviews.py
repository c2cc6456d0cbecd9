"""Questions about users and what they may do; answered, never stored."""

from typing import Any

from kubestow.apiserver.auth.identities import Identities
from kubestow.apiserver.auth.policy import Attempt, allowed, rules_for
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import User

Object = dict[str, Any]


def answer(resource: Resource, review: Object, user: User, identities: Identities, now: str) -> Object:
    """The review with its status filled in."""
    kind = resource.kind
    spec: Object = review.get("spec", {})
    review["apiVersion"], review["kind"] = resource.api_version, kind
    review.setdefault("metadata", {})["creationTimestamp"] = None
    if kind == "TokenReview":
        review["status"] = _token_status(spec, identities)
    elif kind == "SelfSubjectReview":
        review["metadata"]["creationTimestamp"] = now
        review["status"] = {"userInfo": _user_info(user)}
    elif kind == "SelfSubjectRulesReview":
        rules = [{"verbs": ["get"], "nonResourceURLs": ["*"]}]
        review["status"] = {"resourceRules": rules_for(user), "nonResourceRules": rules, "incomplete": False}
    else:
        subject = user
        if kind != "SelfSubjectAccessReview":
            subject = User(spec.get("user", ""), tuple(spec.get("groups", ())))
        review["status"] = {"allowed": allowed(subject, _attempt(spec))}
    return review


def _attempt(spec: Object) -> Attempt:
    wanted = spec.get("resourceAttributes")
    if wanted is None:
        other = spec.get("nonResourceAttributes", {})
        return Attempt(other.get("verb", ""), "", other.get("path", ""))
    name = wanted.get("resource", "")
    if wanted.get("subresource"):
        name = f"{name}/{wanted['subresource']}"
    return Attempt(wanted.get("verb", ""), name or "*")


def _token_status(spec: Object, identities: Identities) -> Object:
    user = identities.by_token(str(spec.get("token", "")).encode())
    if user is None:
        return {"user": {}, "authenticated": False, "error": "this token is not known"}
    status: Object = {"authenticated": True, "user": _user_info(user)}
    if spec.get("audiences"):
        status["audiences"] = spec["audiences"]
    return status


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    return info
