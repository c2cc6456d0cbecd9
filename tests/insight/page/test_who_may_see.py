"""Authorization for the page and its data, and the headers of both."""

import asyncio
from typing import Any

import pytest

from kubestow.insight.page.local import LocalServer, load_or_create_token
from kubestow.insight.page.pages import Site
from kubestow.server.http.messages import Response
from kubestow.server.pages import Stream
from kubestow.testing import SchedulerHarness, make_node
from support.insight.page_harness import API, TOKEN, PageHarness, Reader, served
from support.server.serving import Reviews, Setting
from support.server.serving import served as served_securely


@pytest.fixture(scope="module")
def site() -> Site:
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1"))
        world.run_until_idle()
        page = PageHarness(world)
        page.make_moment()
        return page.site()


def setting(site: Site) -> Setting:
    """Return a secure port at which Ann may read, Ben may also execute dry runs, and Cid may do nothing."""
    allowed = {("ann", "get", f"{API}/cluster"), ("ben", "get", f"{API}/cluster"), ("ben", "post", f"{API}/try")}
    reviews = Reviews({"a": "ann", "b": "ben", "c": "cid"}, allowed)
    return Setting(reviews, open_paths=site.open_paths, below={site.path: site.answer}, posts=site.posts)


@pytest.mark.parametrize(
    ("token", "page", "cluster", "tried"),
    [
        ("", 200, 403, 403),
        ("unknown", 401, 401, 401),
        ("c", 200, 403, 403),
        ("a", 200, 200, 403),
        ("b", 200, 200, 400),
    ],
)
def test_authorization_at_the_secure_port(site: Site, token: str, page: int, cluster: int, tried: int) -> None:
    """The static page is public; the API server authorizes requests for data. 400: an empty body."""

    async def main() -> list[int]:
        async with served_securely(setting(site)) as reader:
            answers = [await reader.get("/ui/", token), await reader.get(f"{API}/cluster", token)]
            answers.append(await reader.get(f"{API}/try", token, method="POST"))
            return [answer.status for answer in answers]

    assert asyncio.run(main()) == [page, cluster, tried]


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE"])
def test_other_methods_are_rejected(site: Site, method: str) -> None:
    """Only the two dry runs accept a body, and they create nothing."""

    async def read(reader: Reader) -> list[int]:
        paths = ("/ui/", f"{API}/cluster", f"{API}/queue", f"{API}/configuration")
        return [(await reader.get(path, method, "{}")).status for path in paths]

    assert served(site, read) == [405] * 4


@pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong", 401), (TOKEN, 200)])
def test_authorization_of_the_local_server(site: Site, token: str, status: int) -> None:
    """Data requires the token of the address; the static page does not."""

    async def read(reader: Reader) -> list[int]:
        reader.token = token
        return [(await reader.get(path)).status for path in (f"{API}/cluster", "/ui/", "/ui/page.js")]

    assert served(site, read) == [status, 200, 200]


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/page.js", f"{API}/cluster", f"{API}/none", "/ui/none.js", "/none", "/ui"]
)
def test_all_responses_have_security_headers(site: Site, path: str) -> None:
    """They forbid other origins, inline scripts, text as markup, frames, and content sniffing."""

    async def read(reader: Reader) -> Any:
        return await reader.get(path)

    headers = served(site, read).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_files_are_sent_once(site: Site) -> None:
    """A client with the file gets 304; content types are correct, as browsers require for modules."""

    async def read(reader: Reader) -> Any:
        first = await reader.get("/ui/page.js")
        reader.headers["If-None-Match"] = first.headers["ETag"]
        return first, await reader.get("/ui/page.js")

    first, second = served(site, read)
    assert first.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert (second.status, second.body) == (304, b"")


def test_the_address_without_a_slash_is_redirected(site: Site) -> None:
    """It is redirected to the address with a slash."""

    async def read(reader: Reader) -> Any:
        return [await reader.get(path) for path in ("/ui", "/")]

    assert [(answer.status, answer.headers["Location"]) for answer in served(site, read)] == [(308, "/ui/")] * 2


def test_an_internal_error_is_a_status(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The details are in the log, not in the response."""

    def fail(_request: Any) -> Response | Stream:
        raise RuntimeError("secret")

    monkeypatch.setattr(site, "answer", fail)

    async def read(reader: Reader) -> Any:
        return await reader.get(f"{API}/cluster")

    answer = served(site, read)
    assert (answer.status, answer.tree["reason"]) == (500, "InternalError")
    assert b"secret" not in answer.body


def test_the_address_stays_the_same(tmp_path: Any, site: Site) -> None:
    """The token is kept in a file that only its owner may read."""
    file = tmp_path / "page-token"
    token = load_or_create_token(file)
    assert load_or_create_token(file) == token
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(token) >= 20

    async def main() -> tuple[str, str]:
        server = LocalServer(site)
        address = await server.start(0)
        await server.stop()
        return address.partition("#token=")[0], address.partition("#token=")[2]

    address, other = asyncio.run(main())
    assert address.startswith("http://127.0.0.1:")
    assert other not in ("", token)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("192.0.2.7", 200),
        ("example.com", 421),
        ("example.com:8080", 421),
        ("localhost.example.com", 421),
        ("127.0.0.1.example.com", 421),
        ("[", 421),
        ("", 421),
    ],
)
def test_the_local_server_must_be_named_by_its_address(site: Site, host: str, status: int) -> None:
    """Web sites whose name resolves to 127.0.0.1 reach neither data nor the static page."""

    async def read(reader: Reader) -> list[int]:
        reader.headers["Host"] = host
        return [(await reader.get(path)).status for path in (f"{API}/cluster", "/ui/")]

    assert served(site, read) == [status] * 2


def test_a_request_that_names_two_hosts_is_rejected(site: Site) -> None:
    """Which of them a browser or proxy meant is not known."""

    async def main() -> bytes:
        server = LocalServer(site, TOKEN)
        port = int((await server.start(0)).split(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /ui/ HTTP/1.1\r\nHost: localhost\r\nHost: example.com\r\n\r\n")
        line = await reader.readline()
        writer.close()
        await server.stop()
        return line

    assert asyncio.run(main()).startswith(b"HTTP/1.1 421")
