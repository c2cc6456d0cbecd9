"""Access to pages: open paths, authentication and authorization by the API server, and the cache of its decisions."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.failures import ConnectError
from kubestow.client.reviews import ReviewedUser
from kubestow.server.authentication import ANONYMOUS, Authenticator, FrontProxies
from kubestow.server.authorization import Authorizer
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request
from kubestow.server.tls import ServerTls
from support.client.authority import Authority, certificates_in
from support.client.virtualtime import run
from support.server.serving import Answer, Reviews, Setting, served


def _ask(setting: Setting, path: str, **more: Any) -> Answer:
    async def main() -> Answer:
        async with served(setting) as reader:
            return await reader.get(path, **more)

    return asyncio.run(main())


def test_anonymous_clients_are_rejected() -> None:
    """A client without credentials is anonymous, and is rejected by this name."""
    reviews = Reviews()
    answer = _ask(Setting(reviews), "/metrics")
    assert answer.status == 403
    status = json.loads(answer.text)
    assert status["message"] == 'forbidden: User "system:anonymous" cannot get path "/metrics"'
    assert reviews.asked == [("access", "system:anonymous", "get", "/metrics")]


def test_open_paths_need_no_review() -> None:
    """Health is readable by all, without requests to the API server."""
    reviews = Reviews()
    assert _ask(Setting(reviews), "/healthz").status == 200
    assert reviews.asked == []


def test_a_known_and_allowed_user_reads() -> None:
    """The token is reviewed, then the access."""
    reviews = Reviews({"good": "monitor"}, {("monitor", "get", "/metrics")})
    assert _ask(Setting(reviews), "/metrics", token="good").status == 200
    assert reviews.asked == [("token", "good"), ("access", "monitor", "get", "/metrics")]


def test_an_unknown_token_is_rejected() -> None:
    """Also for open paths."""
    answer = _ask(Setting(Reviews()), "/healthz", token="bad")
    assert answer.status == 401
    assert json.loads(answer.text)["reason"] == "Unauthorized"


def test_without_an_api_server_no_request_is_allowed() -> None:
    """Neither identity nor rights are assumed."""
    reviews = Reviews({"good": "monitor"})
    reviews.failure = ConnectError("away")
    assert _ask(Setting(reviews), "/metrics", token="good").status == 401
    assert _ask(Setting(reviews), "/metrics").status == 500
    assert _ask(Setting(reviews), "/healthz").status == 200


def _request(path: str = "/metrics", **headers: str) -> Request:
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return Request("GET", path.encode(), named, b"")


class _Peer:
    """A connection without a certificate."""

    peer_certificate_der: bytes | None = None


def test_access_reviews_are_cached() -> None:
    """Allowed and denied access have separate times."""
    reviews = Reviews(allowed={("a", "get", "/metrics")})

    async def main() -> None:
        unchecked: Any = reviews
        authorizer = Authorizer(reviews=unchecked, open_paths=(), allowed_seconds=10.0, denied_seconds=2.0)
        allowed, denied = ReviewedUser("a"), ReviewedUser("b")
        for _ in range(3):
            await authorizer.check(allowed, _request())
            with pytest.raises(ApiError):
                await authorizer.check(denied, _request())
        assert len(reviews.asked) == 2
        await asyncio.sleep(3.0)
        await authorizer.check(allowed, _request())
        with pytest.raises(ApiError):
            await authorizer.check(denied, _request())
        assert len(reviews.asked) == 3
        await asyncio.sleep(10.0)
        await authorizer.check(allowed, _request())
        assert len(reviews.asked) == 4

    run(main())


def test_token_reviews_are_cached_and_merged() -> None:
    """Concurrent requests with one token cause one review."""
    reviews = Reviews({"t": "a"})

    async def main() -> None:
        unchecked: Any = reviews
        peer: Any = _Peer()
        authenticator = Authenticator(reviews=unchecked, cache_seconds=5.0)
        request = _request(authorization="Bearer t")
        users = await asyncio.gather(*(authenticator.authenticate(request, peer) for _ in range(10)))
        assert {user.username for user in users} == {"a"}
        assert len(reviews.asked) == 1
        await asyncio.sleep(6.0)
        await authenticator.authenticate(request, peer)
        assert len(reviews.asked) == 2

    run(main())


def test_without_reviews_tokens_are_ignored() -> None:
    """All clients are anonymous, and only open paths are readable."""

    async def main() -> None:
        peer: Any = _Peer()
        assert await Authenticator(reviews=None).authenticate(_request(authorization="Bearer t"), peer) == ANONYMOUS
        authorizer = Authorizer(reviews=None, open_paths=("/healthz",))
        await authorizer.check(ANONYMOUS, _request("/healthz"))
        with pytest.raises(ApiError):
            await authorizer.check(ANONYMOUS, _request("/metrics"))

    run(main())


def test_masters_read_everything() -> None:
    """Without a review."""

    async def main() -> None:
        authorizer = Authorizer(reviews=None, open_paths=())
        await authorizer.check(ReviewedUser("root", groups=("system:masters",)), _request())

    run(main())


def test_a_client_certificate_names_its_user(tmp_path: Path) -> None:
    """The user is its common name, if the authority of --client-ca-file signed it."""
    authority = Authority()
    shown = tmp_path / "client.pem"
    shown.write_bytes(b"".join(authority.issue("monitor")))
    reviews = Reviews(allowed={("monitor", "get", "/metrics")})
    setting = Setting(reviews, clients=certificates_in(authority.pem), tls=ServerTls(client_authorities=authority.pem))
    assert _ask(setting, "/metrics", shown=shown).status == 200
    assert _ask(setting, "/metrics").status == 403


def test_a_front_proxy_names_users(tmp_path: Path) -> None:
    """If its certificate is of the proxies' authority and its name is allowed; the headers of others are ignored."""
    proxies, clients = Authority("proxies"), Authority("clients")
    good, other, client = tmp_path / "good.pem", tmp_path / "other.pem", tmp_path / "client.pem"
    good.write_bytes(b"".join(proxies.issue("front")))
    other.write_bytes(b"".join(proxies.issue("another")))
    client.write_bytes(b"".join(clients.issue("front")))
    reviews = Reviews(allowed={("alice", "get", "/metrics")})
    setting = Setting(
        reviews,
        clients=certificates_in(clients.pem),
        proxies=FrontProxies(certificates_in(proxies.pem), frozenset({"front"})),
        tls=ServerTls(client_authorities=proxies.pem + clients.pem),
    )
    headers = {"X-Remote-User": "alice", "X-Remote-Group": "ops"}
    assert _ask(setting, "/metrics", shown=good, headers=dict(headers)).status == 200
    assert _ask(setting, "/metrics", shown=other, headers=dict(headers)).status == 403
    assert _ask(setting, "/metrics", shown=client, headers=dict(headers)).status == 403
    assert _ask(setting, "/metrics", headers=dict(headers)).status == 403
    assert {question[1] for question in reviews.asked} == {"alice", "front", "system:anonymous"}
