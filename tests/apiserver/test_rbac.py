"""RBAC authorization."""

from typing import Any

import pytest

from kubestow.client.resources import COMPOSITE_POD_GROUPS, DEVICE_TAINT_RULES, POD_GROUPS, WATCHED, Resource
from support.apiserver.running import TOKEN, Client, Running, pod

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
TOKENS = """\
t-jane,jane,1,"devs"
t-joe,joe,2,""
t-scheduler,system:kube-scheduler,3,""
t-prometheus,prometheus,5,"system:monitoring"
t-account,system:serviceaccount:default:robot,4,"system:serviceaccounts"
"""

pytestmark = pytest.mark.control_plane(tokens=TOKENS, rbac=True)


def _role(admin: Client, name: str, *rules: dict[str, Any], namespace: str = "default") -> None:
    where = f"{RBAC}/namespaces/{namespace}/roles" if namespace else f"{RBAC}/clusterroles"
    admin.create(where, {"metadata": {"name": name}, "rules": list(rules)})


def _bind(admin: Client, role: str, subject: dict[str, str], *, kind: str = "Role", namespace: str = "default") -> None:
    where = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
    group = {} if subject["kind"] == "ServiceAccount" else {"apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    body = {"metadata": {"name": f"{role}-{subject['name']}"}, "roleRef": reference, "subjects": [subject | group]}
    admin.create(where, body)


def _rule(verbs: str, resources: str, groups: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": groups.split() or [""], **more}


def test_everything_is_forbidden_without_a_role(plane: Running) -> None:
    """Even reading; the message names the user, the action and the scope."""
    status, answer = plane.client("t-joe").call("GET", PODS)
    assert status == 403
    assert (
        answer["message"]
        == 'pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    assert plane.client("t-joe").call("GET", "/apis")[0] == 200
    assert plane.client("t-joe").call("GET", "/metrics")[0] == 403


@pytest.mark.parametrize(
    ("token", "page", "part", "metrics"),
    [(None, 200, 403, 403), ("t-joe", 200, 403, 403), ("t-prometheus", 200, 200, 200), (TOKEN, 200, 200, 200)],
)
def test_health_pages_are_open_and_their_parts_are_not(
    plane: Running, token: str | None, page: int, part: int, metrics: int
) -> None:
    """As by the default roles of kube-apiserver: parts and metrics are for monitoring."""
    client = plane.client(token)
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert client.call("GET", path)[0] == page
        assert client.call("GET", f"{path}/" if path == "/version" else f"{path}?verbose")[0] == page
    for path in ("/healthz/ping", "/livez/etcd", "/readyz/ping"):
        assert client.call("GET", path)[0] == part
    for path in ("/metrics", "/metrics/slis"):
        assert client.call("GET", path)[0] == metrics


def test_anonymous_users_may_be_granted_permissions(plane: Running) -> None:
    """By a binding to system:anonymous or to system:unauthenticated."""
    admin = plane.client()
    _role(admin, "reader", _rule("get list", "pods"))
    assert plane.client(token=None).call("GET", PODS)[0] == 403
    _bind(admin, "reader", {"kind": "User", "name": "system:anonymous"})
    assert plane.client(token=None).call("GET", PODS)[0] == 200


def test_a_role_applies_in_its_namespace(plane: Running) -> None:
    """To the bound user, as soon as and as long as the binding exists."""
    admin, jane = plane.client(), plane.client("t-jane")
    _role(admin, "reader", _rule("get list", "pods"))
    assert jane.call("GET", PODS)[0] == 403
    _bind(admin, "reader", {"kind": "User", "name": "jane"})
    assert jane.call("GET", PODS)[0] == 200
    assert jane.call("GET", "/api/v1/namespaces/kube-system/pods")[0] == 403
    assert jane.call("GET", "/api/v1/pods")[0] == 403
    assert jane.call("POST", PODS, pod("p"))[0] == 403
    assert plane.client("t-joe").call("GET", PODS)[0] == 403
    admin.delete(f"{RBAC}/namespaces/default/rolebindings/reader-jane")
    assert jane.call("GET", PODS)[0] == 403


def test_a_cluster_role_applies_where_it_is_bound(plane: Running) -> None:
    """In a namespace by RoleBinding, everywhere by ClusterRoleBinding; for groups and service accounts, too."""
    admin = plane.client()
    _bind(admin, "view", {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}, kind="ClusterRole")
    robot = plane.client("t-account")
    assert robot.call("GET", PODS)[0] == 200
    assert robot.call("GET", "/api/v1/pods")[0] == 403
    assert robot.call("GET", "/api/v1/namespaces/default/secrets")[0] == 403
    _bind(admin, "view", {"kind": "Group", "name": "devs"}, kind="ClusterRole", namespace="")
    assert plane.client("t-jane").call("GET", "/api/v1/pods")[0] == 200


@pytest.mark.parametrize(
    "resource", [*WATCHED, DEVICE_TAINT_RULES, POD_GROUPS, COMPOSITE_POD_GROUPS], ids=lambda one: one.name
)
def test_a_scheduler_may_read_what_it_watches(plane: Running, resource: Resource[Any]) -> None:
    assert plane.client("t-scheduler").call("GET", resource.path)[0] == 200


def test_a_scheduler_may_not_read_secrets(plane: Running) -> None:
    """As without RBAC."""
    for path in ("/api/v1/secrets", "/api/v1/namespaces/default/secrets/any"):
        assert plane.client("t-scheduler").call("GET", path)[0] == 403


def test_rules_may_name_objects_and_subresources(plane: Running) -> None:
    """`resourceNames` allow single objects; a subresource is a resource of its own."""
    admin, jane = plane.client(), plane.client("t-jane")
    for name in ("a", "b"):
        admin.create(PODS, pod(name))
    _role(admin, "one", _rule("get delete", "pods", resourceNames=["a"]), _rule("get", "*/status"))
    _bind(admin, "one", {"kind": "User", "name": "jane"})
    assert jane.call("GET", f"{PODS}/a")[0] == 200
    assert jane.call("GET", f"{PODS}/b")[0] == 403
    assert jane.call("GET", f"{PODS}/b/status")[0] == 200
    assert jane.call("GET", PODS)[0] == 403
    assert jane.call("DELETE", f"{PODS}/b")[0] == 403
    assert jane.call("DELETE", f"{PODS}/a")[0] == 200


def test_an_apply_that_creates_an_object_needs_the_permission_to_create_it(plane: Running) -> None:
    """The permission to patch is enough for an object that exists."""
    admin, jane = plane.client(), plane.client("t-jane")
    path = "/api/v1/namespaces/default/configmaps/a?fieldManager=m"
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    _role(admin, "patcher", _rule("patch", "configmaps"))
    _bind(admin, "patcher", {"kind": "User", "name": "jane"})
    status, denied = jane.call("PATCH", path, applied, content_type="application/apply-patch+yaml")
    what = 'User "jane" cannot create resource "configmaps" in API group "" in the namespace "default"'
    assert (status, denied["message"]) == (403, f'configmaps "a" is forbidden: {what}')
    admin.patch(path, applied, "apply-patch+yaml")
    jane.patch(path, {**applied, "data": {"k": "v"}}, "apply-patch+yaml")


def test_aggregated_roles_include_selected_roles(plane: Running) -> None:
    """Also those created later."""
    admin, jane = plane.client(), plane.client("t-jane")
    selector = {"matchLabels": {"for": "jane"}}
    body = {"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": [selector]}, "rules": []}
    admin.create(f"{RBAC}/clusterroles", body)
    _bind(admin, "all", {"kind": "User", "name": "jane"}, kind="ClusterRole", namespace="")
    assert jane.call("GET", "/api/v1/nodes")[0] == 403
    part = {"metadata": {"name": "part", "labels": {"for": "jane"}}, "rules": [_rule("list", "nodes")]}
    admin.create(f"{RBAC}/clusterroles", part)
    assert jane.call("GET", "/api/v1/nodes")[0] == 200


def test_reviews_use_the_same_rules(plane: Running) -> None:
    """SubjectAccessReview and SelfSubjectRulesReview."""
    admin, jane = plane.client(), plane.client("t-jane")
    _role(admin, "reader", _rule("list", "deployments", "apps"))
    _bind(admin, "reader", {"kind": "Group", "name": "devs"})

    def may(group: str, namespace: str) -> bool:
        wanted = {"verb": "list", "resource": "deployments", "group": group, "namespace": namespace}
        spec = {"user": "jane", "groups": ["devs"], "resourceAttributes": wanted}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    assert may("apps", "default")
    assert not may("", "default")
    assert not may("apps", "kube-system")
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    answer = jane.create(
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review | {"spec": {"namespace": "default"}}
    )
    assert _rule("list", "deployments", "apps") in answer["status"]["resourceRules"]


def test_the_scheduler_has_its_permissions(plane: Running) -> None:
    """It can bind pods, but not create them."""
    admin, scheduler = plane.client(), plane.client("t-scheduler")
    admin.create(PODS, pod("p"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"},
    }
    assert scheduler.call("POST", f"{PODS}/p/binding", binding)[0] == 201
    assert scheduler.call("POST", PODS, pod("q"))[0] == 403
