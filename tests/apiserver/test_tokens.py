"""Tokens of service accounts: valid for their audiences, and as long as all objects exist to which they are bound."""

from typing import Any

import pytest

from kubestow.apiserver.auth.identities import API_AUDIENCES, Identities
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import User
from kubestow.apiserver.rest import tokens
from support.apiserver.running import Client, Running
from support.apiserver.world import World

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
VERSION = "/version"
SPEC = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot", "nodeName": "node-0"}
EXTRA = "authentication.kubernetes.io/"


class Accounts:
    """A cluster with the service account `robot`, a pod of it on a node, and a secret."""

    def __init__(self) -> None:
        self.world = World(nodes=1, kubelets=False, schedules=False, wanted="none")
        self.identities = Identities("admin", self.world.store)
        self.world.create("serviceaccounts", "robot")
        self.world.create("pods", "p", SPEC)
        self.world.create("secrets", "s")

    def issue(self, **spec: Any) -> bytes:
        """Return a new token of `robot`."""
        account = self.world.store.get("serviceaccounts", "default", "robot")
        assert account is not None
        request = tokens.issue(self.world.store, self.identities, account, {"spec": spec})
        return str(request["status"]["token"]).encode()

    def bound(self, kind: str, name: str, **more: str) -> bytes:
        """Return a new token that is bound to an object."""
        return self.issue(boundObjectRef={"apiVersion": "v1", "kind": kind, "name": name, **more})

    def user(self, token: bytes) -> User | None:
        """Return the user of a token."""
        found = self.identities.by_token(token)
        return found.user if found is not None else None


@pytest.fixture
def accounts() -> Accounts:
    """Return a cluster with a service account."""
    return Accounts()


def test_a_token_is_valid_until_it_expires(accounts: Accounts) -> None:
    """For the requested time."""
    token = accounts.issue(expirationSeconds=600)
    assert accounts.user(token) is not None
    accounts.world.clock.time += 601
    assert accounts.user(token) is None


@pytest.mark.parametrize(
    ("kind", "storage", "name"),
    [
        ("", "serviceaccounts", "robot"),
        ("Pod", "pods", "p"),
        ("Secret", "secrets", "s"),
        ("Node", "nodes", "node-0"),
    ],
)
def test_a_token_is_invalid_once_its_object_is_deleted(accounts: Accounts, kind: str, storage: str, name: str) -> None:
    """Also when there is another object of the same name; tokens that are not bound to it stay valid."""
    world = accounts.world
    token = accounts.bound(kind, name) if kind else accounts.issue()
    other = accounts.issue()
    spec = world.get(storage, name).get("spec")
    assert accounts.user(token) is not None
    world.delete(storage, name, grace_seconds=0)
    assert accounts.user(token) is None
    world.create(storage, name, spec)
    assert accounts.user(token) is None
    assert (accounts.user(other) is None) == (kind == "")


def test_a_token_of_an_object_in_deletion_is_valid_for_a_minute(accounts: Accounts) -> None:
    """From its deletion timestamp on: clients may finish their work."""
    world = accounts.world
    world.update("serviceaccounts", "robot", lambda one: one["metadata"].update(finalizers=["example.com/f"]))
    token = accounts.issue()
    world.delete("serviceaccounts", "robot")
    world.clock.time += 59
    assert accounts.user(token) is not None
    world.clock.time += 2
    assert accounts.user(token) is None


def test_a_token_for_another_audience_is_not_for_this_server(accounts: Accounts) -> None:
    """It authenticates only reviews for that audience."""
    token = accounts.issue(audiences=["vault", "other"])
    assert accounts.user(token) is None
    found = accounts.identities.by_token(token, ["a", "vault"])
    assert found is not None
    assert found.audiences == ("vault",)
    both = accounts.issue(audiences=["vault", *API_AUDIENCES])
    assert accounts.user(both) is not None
    for own in (accounts.issue(), b"admin"):
        assert accounts.identities.by_token(own, ["vault"]) is None


def test_the_extra_values_of_a_user_name_the_objects_of_its_token(accounts: Accounts) -> None:
    """As in kube-apiserver: pod and node, and an identifier of the token."""
    world = accounts.world
    node, uid = world.get("nodes", "node-0")["metadata"]["uid"], world.get("pods", "p")["metadata"]["uid"]
    for token, expected in (
        (accounts.issue(), {}),
        (accounts.bound("Secret", "s"), {}),
        (accounts.bound("Node", "node-0"), {"node-name": "node-0", "node-uid": node}),
        (
            accounts.bound("Pod", "p"),
            {"pod-name": "p", "pod-uid": uid, "node-name": "node-0", "node-uid": node},
        ),
    ):
        user = accounts.user(token)
        assert user is not None
        extra = {key.removeprefix(EXTRA): value for key, (value,) in user.extra.items()}
        assert extra.pop("credential-id").startswith("JTI=")
        assert extra == expected


@pytest.mark.parametrize(
    ("reference", "code", "message"),
    [
        ({"kind": "Pod", "name": "none"}, 404, 'pods "none" not found'),
        ({"kind": "Pod", "name": "other"}, 400, "different serviceaccount name"),
        ({"kind": "Pod", "name": "p", "uid": "x"}, 409, "might have been deleted and then recreated"),
        ({"kind": "ConfigMap", "name": "c"}, 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
        ({"kind": "Pod", "apiVersion": "apps/v1", "name": "p"}, 400, "object of type apps/v1, Kind=Pod"),
    ],
)
def test_a_token_can_be_bound_to_an_existing_object_only(
    accounts: Accounts, reference: dict[str, str], code: int, message: str
) -> None:
    """To a pod of the service account, a secret or a node."""
    accounts.world.create("serviceaccounts", "default")
    accounts.world.create("pods", "other", {"containers": [{"name": "c", "image": "i"}]})
    with pytest.raises(ApiError) as caught:
        accounts.issue(boundObjectRef={"apiVersion": "v1", **reference})
    assert (caught.value.code, message in caught.value.message) == (code, True)


def test_a_token_is_requested_for_the_account_of_the_path(client: Client) -> None:
    """Name, namespace and UID in the body must match."""
    client.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    for metadata, status in (
        ({"name": "other"}, 422),
        ({"namespace": "other"}, 422),
        ({"uid": "other"}, 409),
        ({"name": "robot", "namespace": "default"}, 201),
    ):
        assert client.call("POST", f"{ACCOUNTS}/robot/token", {"metadata": metadata})[0] == status


def test_tokens_of_a_deleted_account_are_rejected(plane: Running, client: Client) -> None:
    """By every path, and in reviews, also after an account of the same name has been created."""
    client.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    token = client.create(f"{ACCOUNTS}/robot/token", {})["status"]["token"]
    robot = plane.client(token)
    review = client.create(REVIEWS, {"spec": {"token": token}})["status"]
    assert review["authenticated"]
    assert review["audiences"] == list(API_AUDIENCES)
    for _ in range(2):
        assert robot.call("GET", VERSION)[0] == 200
        client.delete(f"{ACCOUNTS}/robot")
        assert robot.call("GET", VERSION)[0] == 401
        assert not client.create(REVIEWS, {"spec": {"token": token}})["status"]["authenticated"]
        client.create(ACCOUNTS, {"metadata": {"name": "robot"}})
        assert robot.call("GET", VERSION)[0] == 401
        token = client.create(f"{ACCOUNTS}/robot/token", {})["status"]["token"]
        robot = plane.client(token)


def test_invalid_tokens_are_forgotten(accounts: Accounts) -> None:
    """So that requests for tokens do not fill the memory."""
    kept = accounts.issue(expirationSeconds=2**32)
    for _ in range(5):
        for _ in range(1_000):
            accounts.issue(expirationSeconds=600)
        accounts.world.clock.time += 601
    assert accounts.user(kept) is not None
    assert len(accounts.identities._tokens) < 3_000
