"""Authentication and authorization."""

import http.client
import socket
import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.server.http.limits import Limits
from support.apiserver.running import TOKEN, Client, Running, pod
from support.integration.custom_definitions import DEFINITIONS, definition
from support.polling import until

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TOKENS = 'sched-token,system:kube-scheduler,1\nreader,jane,2,"dev,qa"\n'


@pytest.fixture
def shared(start: Callable[..., Running], tmp_path: Path) -> Running:
    """Return a server with users for a scheduler and a reader."""
    path = tmp_path / "tokens.csv"
    path.write_text(TOKENS)
    return start(token_file=path)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_health_and_version_are_open(plane: Running, path: str) -> None:
    """They need no credentials, but invalid ones are rejected."""
    assert plane.client(token=None).call("GET", path)[0] == 200
    assert plane.client(token="").call("GET", path)[0] == 200
    assert plane.client(token="wrong").call("GET", path)[0] == 401


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
def test_verbose_health_lists_each_check(plane: Running, client: Client, name: str) -> None:
    """An unknown check is not found; the page of a check is not open to all."""
    assert plane.client(token=None).call("GET", f"/{name}/etcd")[0] == 403
    assert client.call("GET", f"/{name}?verbose") == (200, f"[+]ping ok\n[+]etcd ok\n{name} check passed\n".encode())
    assert client.call("GET", f"/{name}/etcd") == (200, b"ok")
    assert client.call("GET", f"/{name}/nonsense")[0] == 404


@pytest.mark.parametrize(("token", "status"), [(None, 403), ("", 403), ("wrong", 401)])
@pytest.mark.parametrize("path", [PODS, "/", "/api", "/apis", "/openapi/v3", "/metrics", "/nowhere", "//healthz"])
def test_everything_else_is_closed(plane: Running, path: str, token: str | None, status: int) -> None:
    """403 without a token, since the user is system:anonymous; 401 with an invalid one."""
    found, body = plane.client(token=token).call("GET", path)
    assert (found, body["reason"]) == (status, "Forbidden" if status == 403 else "Unauthorized")
    assert status == 401 or 'User "system:anonymous" cannot ' in body["message"]


def test_other_schemes_than_bearer_are_ignored(plane: Running) -> None:
    """The user is anonymous, as in kube-apiserver."""
    for path, status in (("/healthz", 200), (PODS, 403)):
        response = plane.client(token=None).raw("GET", path, headers={"Authorization": "Basic YTpi"})
        response.read()
        assert response.status == status


def test_a_client_certificate_authenticates(plane: Running) -> None:
    """The administrator's certificate, without a token."""
    config = yaml.safe_load(plane.control_plane.kubeconfig_path.read_text())
    pki = plane.control_plane.ca.parent
    context = ssl.create_default_context(cafile=str(plane.control_plane.ca))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    connection = http.client.HTTPSConnection("127.0.0.1", plane.port, context=context)
    connection.request("GET", PODS)
    assert connection.getresponse().status == 200
    connection.close()
    assert config["clusters"][0]["cluster"]["server"] == plane.control_plane.url


def test_a_scheduler_patches_custom_resources(shared: Running) -> None:
    """Its plugins write status and annotations; it may neither create nor delete them, nor patch other objects."""
    scheduler, admin = shared.client(token="sched-token"), shared.client()
    admin.create(DEFINITIONS, definition("example.com", "Widget", "v1", status=True))
    until(lambda: admin.call("GET", "/apis/example.com/v1/widgets")[0] == 200)
    widget = "/apis/example.com/v1/namespaces/default/widgets/w"
    change = {"content_type": "application/merge-patch+json"}
    for path in (widget, f"{widget}/status"):
        assert scheduler.call("PATCH", path, {}, **change)[0] == 404
        assert shared.client(token="reader").call("PATCH", path, {}, **change)[0] == 403
    assert scheduler.call("DELETE", widget)[0] == 403
    assert scheduler.call("PATCH", "/api/v1/nodes/n", {}, **change)[0] == 403
    rules = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    for token, verbs in (("sched-token", ["patch"]), ("reader", None)):
        listed = shared.client(token=token).create(path, rules)["status"]["resourceRules"]
        found = [rule["verbs"] for rule in listed if rule["apiGroups"] == ["example.com"]]
        assert found == ([verbs] if verbs else [])


def test_secrets_on_disk_are_for_the_owner_only(plane: Running) -> None:
    """The kubeconfig and all keys have mode 0600."""
    pki = plane.control_plane.ca.parent
    for path in (plane.control_plane.kubeconfig_path, *pki.glob("*.key")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_server_certificate_is_verified(plane: Running) -> None:
    """It is valid for localhost and loopback addresses under its own authority, and for no other name."""
    for name, holds in (("localhost", True), ("127.0.0.1", True), ("example.com", False)):
        context = ssl.create_default_context(cafile=str(plane.control_plane.ca))
        raw = socket.create_connection(("127.0.0.1", plane.port))
        try:
            context.wrap_socket(raw, server_hostname=name).close()
            assert holds
        except ssl.SSLCertVerificationError:
            raw.close()
            assert not holds


@pytest.mark.parametrize(
    ("token", "method", "path", "status"),
    [
        ("reader", "GET", PODS, 200),
        ("reader", "GET", f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=x", 400),
        ("reader", "GET", "/api/v1/secrets", 403),
        ("reader", "POST", PODS, 403),
        ("reader", "DELETE", PODS, 403),
        ("reader", "POST", f"{PODS}/a/binding", 403),
        ("sched-token", "POST", f"{PODS}/nope/binding", 404),
        ("sched-token", "DELETE", f"{PODS}/nope", 404),
        ("sched-token", "POST", CLAIMS, 201),
        ("sched-token", "DELETE", f"{CLAIMS}/nope", 404),
        ("sched-token", "POST", PODS, 403),
        ("sched-token", "GET", "/api/v1/secrets", 403),
        (TOKEN, "GET", "/api/v1/secrets", 200),
    ],
)
def test_the_fixed_policy(shared: Running, token: str, method: str, path: str, status: int) -> None:
    """Administrators may do everything, the scheduler its work, others read everything but secrets."""
    body = (
        {"metadata": {"name": "nope"}, "target": {"name": "n"}}
        if "binding" in path
        else pod()
        if method == "POST"
        else None
    )
    if path == CLAIMS:
        body = {"metadata": {"generateName": "p-extended-resources-"}, "spec": {"devices": {"requests": []}}}
    assert shared.client(token=token).call(method, path, body)[0] == status


def test_a_403_response_names_user_and_action(shared: Running) -> None:
    """With the resource, the API group and the scope."""
    _, body = shared.client(token="reader").call("DELETE", f"{PODS}/a")
    assert 'User "jane" cannot delete resource "pods" in API group "" in the namespace "default"' in body["message"]


def test_token_review(shared: Running) -> None:
    """The scheduler's server verifies the tokens of its clients."""
    client = shared.client(token="sched-token")
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    known = client.create(path, {"spec": {"token": "reader"}})["status"]
    assert known["authenticated"]
    assert known["user"] == {"username": "jane", "uid": "2", "groups": ["dev", "qa", "system:authenticated"]}
    assert not client.create(path, {"spec": {"token": "x"}})["status"]["authenticated"]


@pytest.mark.parametrize(
    ("review", "spec", "expected"),
    [
        ("selfsubjectaccessreviews", {"resourceAttributes": {"verb": "create", "resource": "pods"}}, False),
        ("selfsubjectaccessreviews", {"resourceAttributes": {"verb": "list", "resource": "nodes"}}, True),
        ("selfsubjectaccessreviews", {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, True),
    ],
)
def test_access_reviews(shared: Running, review: str, spec: dict[str, dict[str, str]], expected: bool) -> None:
    """The result is the decision of the policy."""
    path = f"/apis/authorization.k8s.io/v1/{review}"
    answer = shared.client(token="reader").create(path, {"spec": spec})
    assert answer["status"]["allowed"] is expected


def test_another_user_is_reviewed(shared: Running) -> None:
    """SubjectAccessReview concerns the user that it names."""
    spec = {"user": "x", "groups": ["system:masters"], "resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    client = shared.client(token="sched-token")
    assert client.create(path, {"spec": spec})["status"]["allowed"]
    assert not client.create(path, {"spec": {**spec, "groups": []}})["status"]["allowed"]


LOCAL = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews"
SUBJECT = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
GET = {"verb": "get", "path": "/"}


@pytest.mark.parametrize(
    ("path", "spec", "status"),
    [
        (LOCAL, {"user": "u", "resourceAttributes": {"namespace": "default"}}, 201),
        (LOCAL, {"user": "u", "resourceAttributes": {"namespace": "kube-system"}}, 422),
        (LOCAL, {"user": "u", "resourceAttributes": {}}, 422),
        (LOCAL, {"user": "u", "nonResourceAttributes": GET}, 422),
        (SUBJECT, {"user": "u", "nonResourceAttributes": GET}, 201),
        (SUBJECT, {"groups": ["g"], "nonResourceAttributes": GET}, 201),
        (SUBJECT, {"nonResourceAttributes": GET}, 422),
        (SUBJECT, {"user": "u"}, 422),
        (SUBJECT, {"user": "u", "nonResourceAttributes": GET, "resourceAttributes": {}}, 422),
    ],
)
def test_access_reviews_are_validated(client: Client, path: str, spec: dict[str, Any], status: int) -> None:
    """A review of a namespace is about permissions there."""
    assert client.call("POST", path, {"spec": spec})[0] == status


def test_unauthenticated_users_have_no_permissions(shared: Running) -> None:
    """In access reviews, too."""
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    stranger = {"user": "system:anonymous", "groups": ["system:unauthenticated"]}
    for wish in (
        {"nonResourceAttributes": {"verb": "get", "path": "/debug/decisions"}},
        {"resourceAttributes": {"verb": "list", "resource": "nodes"}},
    ):
        answer = shared.client(token="sched-token").create(path, {"spec": {**stranger, **wish}})
        assert not answer["status"]["allowed"], wish


def test_a_service_account_gets_a_token(client: Client, plane: Running) -> None:
    """TokenRequest: the token authenticates the account."""
    client.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    request = client.create("/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
    robot = plane.client(token=request["status"]["token"])
    me = robot.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert me["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"


def test_a_body_over_the_limit_is_refused(start: Callable[..., Running]) -> None:
    """413, and the connection is closed."""
    client = start(limits=Limits(body=1000)).client()
    response = client.raw("POST", PODS, b"x" * 1001)
    assert response.status == 413
    assert response.getheader("Connection") == "close"


def test_head_has_no_body(client: Client) -> None:
    """The connection can be used for another request."""
    response = client.raw("HEAD", PODS)
    assert (response.status, response.read()) == (200, b"")
    assert client.get(PODS)["items"] == []


def test_loopback_is_the_default(plane: Running) -> None:
    """By default, the server listens on loopback addresses only."""
    assert plane.control_plane.options.bind_address == "127.0.0.1"
    assert plane.control_plane.url.startswith("https://127.0.0.1:")
