"""Users cannot grant permissions that they do not have."""

from typing import Any

import pytest

from support.apiserver.running import Client, Running

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
MANAGE = {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"]}
WRITE = MANAGE | {"verbs": ["get", "create", "update", "patch"], "resources": ["roles", "clusterroles"]}
READ = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
SECRETS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"]}

pytestmark = pytest.mark.control_plane(tokens='t-jane,jane,1,"devs"\n', rbac=True)


def _role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def _binding(role: str, kind: str = "Role") -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    reference = {"apiGroup": group, "kind": kind, "name": role}
    subject = {"kind": "User", "name": "jane", "apiGroup": group}
    return {"metadata": {"name": f"{role}-jane"}, "roleRef": reference, "subjects": [subject]}


def _jane(plane: Running, *rules: dict[str, Any]) -> Client:
    """Return a client of the user Jane, with these permissions everywhere."""
    plane.client().create(f"{RBAC}/clusterroles", _role("hers", *rules))
    plane.client().create(f"{RBAC}/clusterrolebindings", _binding("hers", "ClusterRole"))
    return plane.client("t-jane")


def test_authors_may_grant_their_own_permissions(plane: Running) -> None:
    """Any part of them, also by resource names."""
    jane = _jane(plane, WRITE, READ, {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]})
    named = READ | {"verbs": ["get"], "resourceNames": ["one", "two"]}
    assert jane.call("POST", ROLES, _role("reading", READ, named))[0] == 201
    paths = {"verbs": ["get"], "nonResourceURLs": ["/logs/a"]}
    assert jane.call("POST", f"{RBAC}/clusterroles", _role("paths", paths))[0] == 201


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH"])
def test_a_role_with_more_permissions_is_denied(plane: Running, verb: str) -> None:
    """By any verb; the message lists the missing permissions."""
    jane = _jane(plane, WRITE, READ)
    path = ROLES
    if verb != "POST":
        plane.client().create(ROLES, _role("reading", READ))
        path = f"{ROLES}/reading"
    media = "application/merge-patch+json" if verb == "PATCH" else "application/json"
    status, answer = jane.call(verb, path, _role("reading", READ, SECRETS), content_type=media)
    assert status == 403
    assert answer["message"] == (
        'roles.rbac.authorization.k8s.io "reading" is forbidden: user "jane" (groups=["devs" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )


def test_a_binding_to_a_role_with_more_permissions_is_denied(plane: Running) -> None:
    """Unless its author has them, or may bind that role."""
    plane.client().create(ROLES, _role("secrets", SECRETS))
    plane.client().create(ROLES, _role("reading", READ))
    jane = _jane(plane, MANAGE, READ)
    assert jane.call("POST", BINDINGS, _binding("reading"))[0] == 201
    status, answer = jane.call("POST", BINDINGS, _binding("secrets"))
    assert status == 403
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}' in answer["message"]
    assert jane.call("POST", BINDINGS, _binding("cluster-admin", "ClusterRole"))[0] == 403
    assert jane.call("POST", BINDINGS, _binding("nowhere"))[0] == 404
    assert jane.call("GET", "/api/v1/namespaces/default/secrets")[0] == 403


@pytest.mark.parametrize("verb", ["bind", "escalate"])
def test_bind_and_escalate_lift_the_restriction(plane: Running, verb: str) -> None:
    """These verbs allow granting permissions that the author lacks."""
    plane.client().create(ROLES, _role("secrets", SECRETS))
    may = MANAGE | {"verbs": [verb], "resources": ["roles"]}
    jane = _jane(plane, MANAGE, WRITE, READ, may)
    assert jane.call("POST", ROLES, _role("more", SECRETS))[0] == (201 if verb == "escalate" else 403)
    assert jane.call("POST", BINDINGS, _binding("secrets"))[0] == (201 if verb == "bind" else 403)


def test_aggregated_roles_need_all_permissions(plane: Running) -> None:
    """Such a role can get any rules later."""
    jane = _jane(plane, WRITE, READ)
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    status, answer = jane.call("POST", f"{RBAC}/clusterroles", _role("all", aggregationRule=selectors))
    assert status == 403
    assert answer["message"].endswith("must have cluster-admin privileges to use the aggregationRule")


def test_an_unchanged_role_may_be_written_with_fewer_permissions(plane: Running) -> None:
    """Garbage collection changes owners and finalizers, which grants nothing."""
    plane.client().create(ROLES, _role("secrets", SECRETS))
    jane = _jane(plane, WRITE)
    body: dict[str, Any] = {"metadata": {"finalizers": ["example.com/wait"]}}
    media = "application/merge-patch+json"
    assert jane.call("PATCH", f"{ROLES}/secrets", body, content_type=media)[0] == 200
    body["metadata"]["labels"] = {"a": "b"}
    assert jane.call("PATCH", f"{ROLES}/secrets", body, content_type=media)[0] == 403


def test_a_rule_with_many_combinations_is_checked_as_a_whole(plane: Running) -> None:
    """It is denied without delay."""
    jane = _jane(plane, WRITE, READ)
    many = [f"x{number}" for number in range(2000)]
    rule = {"verbs": many, "apiGroups": many, "resources": many, "resourceNames": many}
    assert jane.call("POST", ROLES, _role("many", rule))[0] == 403
