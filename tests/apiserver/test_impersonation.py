"""Impersonation: the cases of kube-apiserver, and what namespaced permissions must not allow."""

import json
from typing import Any, NamedTuple

import pytest

from kubestow.apiserver.auth.impersonation import Impersonation, resolve
from kubestow.apiserver.auth.policy import Attempt
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import User
from support.apiserver.running import Client, Running

RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
PODS = "/api/v1/namespaces/default/pods"
ROBOT, NODE = "system:serviceaccount:x:robot", "system:node:n1"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
ACCOUNTS = ("system:serviceaccounts", "system:serviceaccounts:x")
LIST = Attempt("list", "pods", namespace="default")
NODE_NAME = "authentication.kubernetes.io/node-name"

pytestmark = pytest.mark.control_plane(tokens=f't-robot,{ROBOT},1,"system:serviceaccounts"\n', rbac=True)


class Allowing:
    """Allows attempts by patterns such as `get core/pods namespace name`; `-` is an empty part."""

    def __init__(self, *patterns: str) -> None:
        self._patterns = [pattern.split() for pattern in patterns]
        self.attempts: list[str] = []

    def allowed(self, _: User, attempt: Attempt) -> bool:
        """Record the attempt, and return whether a pattern matches it."""
        where = f"{attempt.group or 'core'}/{attempt.resource}" if attempt.resource else attempt.path
        parts = [attempt.verb, where, attempt.namespace or "-", attempt.name or "-"]
        self.attempts.append(" ".join(parts))
        return any(
            all(wanted in ("*", part) for wanted, part in zip(pattern, parts, strict=True))
            for pattern in self._patterns
        )

    def rules_for(self, _user: User, _namespace: str) -> list[dict[str, list[str]]]:
        """Return no rules: reviews are not tested here."""
        return []


def act(
    headers: dict[str, str], *allowed: str, author: User | None = None, attempt: Attempt = LIST
) -> tuple[Impersonation | str | None, list[str]]:
    """Return the impersonated user or the message of the denial, and the attempts that were authorized."""
    authorizer = Allowing(*allowed)
    encoded = {f"impersonate-{key}".lower().encode(): value.encode() for key, value in headers.items()}
    try:
        return resolve(encoded, author or User("dev"), attempt, authorizer), authorizer.attempts
    except ApiError as error:
        return error.message, authorizer.attempts


class Case(NamedTuple):
    """Headers, the allowed attempts, and the resulting user."""

    headers: dict[str, str]
    allowed: tuple[str, ...]
    groups: tuple[str, ...]
    constraint: str = ""


EVERYTHING = ("impersonate * - *",)
ORIGINAL: dict[str, Case] = {
    "a user": Case({"User": "jane"}, ("impersonate core/users - jane",), (AUTHENTICATED,)),
    "a user and groups": Case(
        {"User": "jane", "Group": "a\nb"},
        ("impersonate core/users - jane", "impersonate core/groups - a", "impersonate core/groups - b"),
        ("a", "b", AUTHENTICATED),
    ),
    "a group with a comma": Case(
        {"User": "jane", "Group": "a,b"},
        ("impersonate core/users - jane", "impersonate core/groups - a,b"),
        ("a,b", AUTHENTICATED),
    ),
    "masters": Case({"User": "jane", "Group": "system:masters"}, EVERYTHING, ("system:masters", AUTHENTICATED)),
    "a UID": Case(
        {"User": "jane", "Uid": "7"},
        ("impersonate core/users - jane", "impersonate authentication.k8s.io/uids - 7"),
        (AUTHENTICATED,),
    ),
    "extra values": Case(
        {"User": "jane", "Extra-Scopes": "a\nb"},
        (
            "impersonate core/users - jane",
            "impersonate authentication.k8s.io/userextras/scopes - a",
            "impersonate authentication.k8s.io/userextras/scopes - b",
        ),
        (AUTHENTICATED,),
    ),
    "a service account": Case(
        {"User": ROBOT}, ("impersonate core/serviceaccounts x robot",), (*ACCOUNTS, AUTHENTICATED)
    ),
    "a service account with groups": Case(
        {"User": ROBOT, "Group": "a"},
        ("impersonate core/serviceaccounts x robot", "impersonate core/groups - a"),
        ("a", AUTHENTICATED),
    ),
    "an invalid service account is a user": Case(
        {"User": f"{ROBOT}:y"}, (f"impersonate core/users - {ROBOT}:y",), (AUTHENTICATED,)
    ),
    "a node is a user": Case({"User": NODE}, (f"impersonate core/users - {NODE}",), (AUTHENTICATED,)),
    "anonymous": Case({"User": "system:anonymous"}, EVERYTHING, (UNAUTHENTICATED,)),
    "anonymous in its group": Case(
        {"User": "system:anonymous", "Group": UNAUTHENTICATED}, EVERYTHING, (UNAUTHENTICATED,)
    ),
    "an unauthenticated user": Case({"User": "jane", "Group": UNAUTHENTICATED}, EVERYTHING, (UNAUTHENTICATED,)),
    "an authenticated user": Case({"User": "jane", "Group": f"a\n{AUTHENTICATED}"}, EVERYTHING, ("a", AUTHENTICATED)),
}
CONSTRAINED: dict[str, Case] = {
    "a user": Case(
        {"User": "jane", "Uid": "7", "Group": "a", "Extra-example.com%2fScope": "s"},
        (
            "impersonate-on:user-info:list core/pods default -",
            "impersonate:user-info authentication.k8s.io/users - jane",
            "impersonate:user-info authentication.k8s.io/uids - 7",
            "impersonate:user-info authentication.k8s.io/groups - a",
            "impersonate:user-info authentication.k8s.io/userextras/example.com/scope - s",
        ),
        ("a", AUTHENTICATED),
        "impersonate:user-info",
    ),
    "many groups at once": Case(
        {"User": "jane", "Group": "a\nb\nc\nd"},
        (
            "impersonate-on:user-info:list core/pods default -",
            "impersonate:user-info authentication.k8s.io/users - jane",
            "impersonate:user-info authentication.k8s.io/groups - *",
        ),
        ("a", "b", "c", "d", AUTHENTICATED),
        "impersonate:user-info",
    ),
    "many extra values at once": Case(
        {"User": "jane", "Extra-example.com%2fa": "1\n2\n3\n4"},
        (
            "impersonate-on:user-info:list core/pods default -",
            "impersonate:user-info authentication.k8s.io/users - jane",
            "impersonate:user-info authentication.k8s.io/userextras/* - *",
        ),
        (AUTHENTICATED,),
        "impersonate:user-info",
    ),
    "a service account": Case(
        {"User": ROBOT},
        (
            "impersonate-on:serviceaccount:list core/pods default -",
            "impersonate:serviceaccount authentication.k8s.io/serviceaccounts x robot",
        ),
        (*ACCOUNTS, AUTHENTICATED),
        "impersonate:serviceaccount",
    ),
    "a node": Case(
        {"User": NODE},
        (
            "impersonate-on:arbitrary-node:list core/pods default -",
            "impersonate:arbitrary-node authentication.k8s.io/nodes - n1",
        ),
        ("system:nodes", AUTHENTICATED),
        "impersonate:arbitrary-node",
    ),
}


@pytest.mark.parametrize("case", [*ORIGINAL.values(), *CONSTRAINED.values()], ids=[*ORIGINAL, *CONSTRAINED])
def test_each_part_of_a_user_is_authorized(case: Case) -> None:
    """With exactly these permissions the user is impersonated; without any of them it is not."""
    found, attempts = act(case.headers, *case.allowed)
    assert isinstance(found, Impersonation), found
    assert (found.author.name, found.user.name) == ("dev", case.headers["User"])
    assert (found.user.groups, found.constraint) == (case.groups, case.constraint)
    assert found.user.uid == case.headers.get("Uid", "")
    if case.allowed == EVERYTHING:
        return
    assert attempts[-len(case.allowed) :] == list(case.allowed)
    for missing in case.allowed:
        rest = [one for one in case.allowed if one != missing]
        assert isinstance(act(case.headers, *rest)[0], str), missing


@pytest.mark.parametrize(
    "case", [case for case in ORIGINAL.values() if case.allowed != EVERYTHING], ids=lambda case: " ".join(case.headers)
)
def test_permissions_in_a_namespace_allow_service_accounts_only(case: Case) -> None:
    """Users, groups, UIDs and extra values are valid in the whole cluster."""
    found, _ = act(case.headers, "* * x *")
    assert isinstance(found, Impersonation) == (case.headers == {"User": ROBOT})


def test_a_pod_may_be_allowed_to_act_as_its_own_node() -> None:
    """By a permission for all nodes, since pods of all nodes share the service account; not as another node."""
    author = User(ROBOT, extra={NODE_NAME: ("n1",)})
    allowed = (
        "impersonate-on:associated-node:list core/pods default -",
        "impersonate:associated-node authentication.k8s.io/nodes - *",
    )
    found, attempts = act({"User": NODE}, *allowed, author=author)
    assert isinstance(found, Impersonation)
    assert (found.user.groups, found.constraint) == (("system:nodes", AUTHENTICATED), "impersonate:associated-node")
    assert attempts == list(allowed)
    for headers, other in (
        ({"User": "system:node:n2"}, author),
        ({"User": NODE, "Group": "a"}, author),
        ({"User": NODE}, User("dev", extra={NODE_NAME: ("n1",)})),
        ({"User": NODE}, User(ROBOT, extra={NODE_NAME: ("n1", "n2")})),
        ({"User": NODE}, User(ROBOT)),
    ):
        assert isinstance(act(headers, *allowed, author=other)[0], str)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"User": "jane", "Group": ""}, "the empty string group"),
        ({"User": "jane", "Group": "system:masters"}, "the system:masters group"),
        ({"User": "jane", "Extra-": "a"}, "an invalid key in extra"),
        ({"User": "jane", "Extra-scopes": "a"}, "an invalid key in extra"),
        ({"User": "jane", "Extra-example.com%2fa%20b": "a"}, "an invalid key in extra"),
        ({"User": "jane", "Extra-example.com%2f%41": "a"}, "a non-lowercase key in extra"),
        ({"User": "jane", "Extra-example.com%2fa": ""}, "the empty string value in extra"),
    ],
)
def test_constrained_modes_reject_what_the_original_one_accepts(headers: dict[str, str], why: str) -> None:
    """With the reason in the message, although everything is allowed to them."""
    message, _ = act(headers, "impersonate-on:user-info:list * * *", "impersonate:user-info * - *")
    assert isinstance(message, str)
    assert message.endswith(f"is not allowed{message.rpartition('is not allowed')[2]}")
    assert f"impersonating {why}" in message
    assert isinstance(act(headers, *EVERYTHING)[0], Impersonation)


@pytest.mark.parametrize(
    "headers", [{"Group": "a"}, {"Group": ""}, {"Uid": "7"}, {"Extra-a": "b"}, {"User": "", "Uid": "7"}]
)
def test_parts_without_a_user_name_are_rejected(headers: dict[str, str]) -> None:
    """Before anything is authorized."""
    message, attempts = act(headers, *EVERYTHING)
    assert isinstance(message, str)
    assert "without impersonating a user name" in message
    assert attempts == []


def test_empty_headers_impersonate_nobody() -> None:
    """As if they were missing."""
    assert act({"User": "", "Uid": ""}) == (None, [])


@pytest.mark.parametrize(
    ("key", "decoded"),
    [
        ("scopes", "scopes"),
        ("example.com%2fescaped%e1%9b%84scopes", "example.com/escapedᛄscopes"),
        ("almost%zzpercent%xxencoded", "almost%zzpercent%xxencoded"),
    ],
)
def test_keys_of_extra_values_are_percent_encoded(key: str, decoded: str) -> None:
    """An invalid encoding is kept unchanged."""
    found, _ = act({"User": "jane", f"Extra-{key}": "a\nb"}, *EVERYTHING)
    assert isinstance(found, Impersonation)
    assert found.user.extra == {decoded: ("a", "b")}


@pytest.mark.parametrize(
    ("headers", "attempt", "message"),
    [
        (
            {"User": "jane"},
            LIST,
            'cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            {"User": ROBOT},
            Attempt("get", path="/metrics"),
            'cannot impersonate-on:serviceaccount:get path "/metrics"',
        ),
        (
            {"User": ROBOT, "Group": "a"},
            LIST,
            'cannot impersonate resource "serviceaccounts" in API group "" in the namespace "x"',
        ),
    ],
)
def test_the_denial_of_the_first_mode_is_shown(headers: dict[str, str], attempt: Attempt, message: str) -> None:
    """It names the author, the verb and the scope."""
    found, _ = act(headers, attempt=attempt)
    assert isinstance(found, str)
    assert found.endswith(f'forbidden: User "dev" {message}')


# Over HTTP


@pytest.fixture
def robot(plane: Running) -> Client:
    """Return a client of a service account that may do everything in its namespace."""
    admin = plane.client()
    admin.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "x"}
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    admin.create(f"{RBAC}/namespaces/x/roles", {"metadata": {"name": "all"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
    admin.create(
        f"{RBAC}/namespaces/x/rolebindings", {"metadata": {"name": "all"}, "roleRef": reference, "subjects": [subject]}
    )
    return plane.client("t-robot")


def _ask(client: Client, method: str, path: str, headers: list[tuple[str, str]]) -> tuple[int, Any]:
    """Send a request with headers that may repeat."""
    connection = client._connection
    connection.putrequest(method, path)
    body = b"{}" if method == "POST" else b""
    for name, value in (("Authorization", f"Bearer {client.token}"), ("Content-Length", str(len(body))), *headers):
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


@pytest.mark.parametrize("group", ["system:masters", "kubeadm:cluster-admins"])
def test_an_administrator_of_a_namespace_cannot_join_groups(robot: Client, group: str) -> None:
    """Not by impersonating a service account of that namespace with a group."""
    headers = [("Impersonate-User", "system:serviceaccount:x:other"), ("Impersonate-Group", group)]
    status, answer = _ask(robot, "GET", "/api/v1/namespaces/kube-system/secrets", headers)
    assert status == 403
    assert "impersonate" in answer["message"]
    assert _ask(robot, "GET", "/api/v1/namespaces/x/secrets", headers[:1])[0] == 403
    assert _ask(robot, "POST", WHO, headers[:1])[1]["status"]["userInfo"]["groups"][:2] == list(ACCOUNTS)
    assert _ask(robot, "POST", WHO, [("Impersonate-User", "jane")])[0] == 403


def test_repeated_headers_are_separate_values(plane: Running) -> None:
    """A comma is a part of a value."""
    headers = [("Impersonate-User", "a,b"), ("Impersonate-User", "c"), ("Impersonate-Group", "d,e")]
    headers += [("Impersonate-Group", "f"), ("Impersonate-Extra-Scope", "1,2"), ("Impersonate-Extra-Scope", "3")]
    _, answer = _ask(plane.client(), "POST", WHO, headers)
    assert answer["status"]["userInfo"] == {
        "username": "a,b",
        "groups": ["d,e", "f", AUTHENTICATED],
        "extra": {"scope": ["1,2", "3"]},
    }


def test_anonymous_users_cannot_impersonate(plane: Running) -> None:
    """Not even on paths that are open to all."""
    client = plane.client(token=None)
    for path in ("/version", PODS):
        response = client.raw("GET", path, headers={"Impersonate-User": "jane"})
        assert (response.status, json.loads(response.read())["reason"]) == (403, "Forbidden")
