"""Rules for roles and their bindings, certificate signing requests, and flow control."""

import base64
from collections.abc import Iterator
from typing import Any

from cryptography import x509

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.objects.intent import User
from kubestow.apiserver.rules.causes import check_choice, check_enums, check_required, invalid, required
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.names import INVALID

_RBAC = "rbac.authorization.k8s.io"


def default_binding(obj: dict[str, Any]) -> None:
    """Set the API group of roles, users and groups to that of RBAC."""
    reference = obj.get("roleRef")
    if reference is not None:
        reference.setdefault("apiGroup", _RBAC)
    for subject in obj.get("subjects", ()):
        if "apiGroup" not in subject and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _RBAC


def validate_role(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that each rule has verbs, and is either for resources or for paths."""
    for index, rule in enumerate(obj.get("rules", ())):
        path, urls = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if urls:
            where = f"{path}.nonResourceURLs"
            if obj["kind"] == "Role":
                yield invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                yield invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs")
            continue
        for name, what in (("apiGroups", "api group"), ("resources", "resource")):
            if not rule.get(name):
                yield required(f"{path}.{name}", f"resource rules must supply at least one {what}")


def validate_binding(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the role and the subjects of a binding."""
    reference = obj.get("roleRef", {})
    roles = ("ClusterRole",) if obj["kind"] == "ClusterRoleBinding" else ("Role", "ClusterRole")
    yield from check_choice(reference.get("kind", ""), roles, "roleRef.kind")
    yield from check_required(reference, "roleRef", "name")
    for index, subject in enumerate(obj.get("subjects", ())):
        yield from check_required(subject, f"subjects[{index}]", "name")
        yield from check_enums(subject, f"subjects[{index}]", {"kind": ("ServiceAccount", "User", "Group")})
        if (
            obj["kind"] == "ClusterRoleBinding"
            and subject.get("kind") == "ServiceAccount"
            and not subject.get("namespace")
        ):
            yield required(f"subjects[{index}].namespace")


def validate_binding_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the role is unchanged: the right to bind was checked for that role only."""
    if new.get("roleRef") != old.get("roleRef"):
        yield invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


def default_request(obj: dict[str, Any]) -> None:
    """Set the default usages of a certificate."""
    obj.setdefault("spec", {}).setdefault("usages", ["digital signature", "key encipherment"])


def set_requester(obj: dict[str, Any], user: User) -> None:
    """Set the requesting user, overriding the one in the request."""
    spec = obj["spec"]
    for part in ("username", "uid", "groups", "extra"):
        spec.pop(part, None)
    spec.update(user.info())


def validate_request(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that the request is PEM, and the signer name has a domain."""
    spec = obj["spec"]
    signer = spec.get("signerName", "")
    if "/" not in signer:
        yield invalid(
            "spec.signerName", signer, "must be a fully qualified domain and path of the form example.com/name"
        )
    try:
        x509.load_pem_x509_csr(base64.b64decode(spec.get("request", "")))
    except ValueError:
        yield "spec.request", INVALID, "Invalid value: PEM block type must be CERTIFICATE REQUEST"
    seconds = spec.get("expirationSeconds", 600)
    if seconds < 600:
        yield invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 600")


def validate_request_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the spec is unchanged."""
    if new["spec"] != old["spec"]:
        yield "spec", INVALID, "Invalid value: field is immutable"


def default_flow(obj: dict[str, Any]) -> None:
    """Set the default matching precedence."""
    spec = obj.setdefault("spec", {})
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def default_level(obj: dict[str, Any]) -> None:
    """Set the defaults of limited and exempt priority levels."""
    spec = obj.setdefault("spec", {})
    limited = spec.get("limited")
    if limited is not None:
        set_missing(limited, {"nominalConcurrencyShares": 30, "lendablePercent": 0})
        queuing = limited.get("limitResponse", {}).get("queuing")
        if queuing is not None:
            set_missing(queuing, {"queues": 64, "handSize": 8, "queueLengthLimit": 50})
    exempt = spec.get("exempt")
    if exempt is not None:
        set_missing(exempt, {"nominalConcurrencyShares": 0, "lendablePercent": 0})
