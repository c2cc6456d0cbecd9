"""The scheduler's port: every path for every kind of caller, as in docs/reference/who-gets-in.md."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow.server.http.messages import Response
from kubestow.server.pages import Page
from kubestow.server.tls import ServerTls
from support.client.authority import Authority, certificates_in
from support.repository import ROOT
from support.server.serving import Reader, Reviews, Setting, served

OPEN = ("/healthz", "/livez", "/readyz")
PATHS = (
    *OPEN,
    "/configz",
    "/debug/decisions",
    "/debug/flags/v",
    "/debug/pprof/",
    "/flagz",
    "/metrics",
    "/metrics/resources",
    "/metrics/slis",
    "/statusz",
    "/version",
    "/no/such/page",
)
PAGE = ROOT / "docs/reference/who-gets-in.md"
REFUSED_BY_TLS = 0
SERVED = 200
CALLERS: dict[str, tuple[dict[str, Any], int, int]] = {
    "no credentials": ({}, SERVED, 403),
    "a wrong token": ({"token": "wrong"}, 401, 401),
    "a token without rights": ({"token": "stranger"}, SERVED, 403),
    "a token with rights": ({"token": "reader"}, SERVED, SERVED),
    "a certificate with rights": ({"shown": "good"}, SERVED, SERVED),
    "a certificate without rights": ({"shown": "powerless"}, SERVED, 403),
    "an expired certificate": ({"shown": "expired"}, REFUSED_BY_TLS, REFUSED_BY_TLS),
    "a certificate of another authority": ({"shown": "other"}, REFUSED_BY_TLS, REFUSED_BY_TLS),
}
"""The credentials of each caller, and the results at open paths and at the others."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the certificates of the callers as files, and that of the authority."""
    folder, authority = tmp_path_factory.mktemp("shown"), Authority()
    made = {
        "good": authority.issue("reader"),
        "powerless": authority.issue("stranger"),
        "expired": authority.issue("reader", expired=True),
        "other": Authority("another authority").issue("reader"),
        "authority": (authority.pem,),
    }
    for name, parts in made.items():
        (folder / name).write_bytes(b"".join(parts))
    return {name: folder / name for name in made}


async def _status(reader: Reader, path: str, how: dict[str, Any]) -> int:
    try:
        answer = await reader.get(path, **how)
    except (ssl.SSLError, ConnectionError):
        return REFUSED_BY_TLS
    # An authorized user gets the error that there is no such page, or that it only accepts PUT.
    return SERVED if answer.status in (404, 405) else answer.status


def _setting(authority: bytes) -> Setting:
    allowed = {("reader", "get", path) for path in PATHS}
    below: dict[str, Page] = {"/debug/decisions": lambda _: Response(200, b"{}")}
    return Setting(
        Reviews({"reader": "reader", "stranger": "stranger"}, allowed),
        clients=certificates_in(authority),
        tls=ServerTls(client_authorities=authority),
        below=below,
    )


@pytest.mark.parametrize("caller", CALLERS)
def test_every_path(caller: str, shown: dict[str, Path]) -> None:
    """Open paths are readable without credentials, but not with invalid ones; the others only by authorized users."""
    how, at_open, at_others = CALLERS[caller]
    given = {key: shown[value] if key == "shown" else value for key, value in how.items()}

    async def main() -> dict[str, int]:
        async with served(_setting(shown["authority"].read_bytes())) as reader:
            return {path: await _status(reader, path, given) for path in PATHS}

    assert asyncio.run(main()) == {path: at_open if path in OPEN else at_others for path in PATHS}


def _rows() -> Iterator[tuple[str, str, str]]:
    words = {SERVED: "served", REFUSED_BY_TLS: "refused in the TLS handshake"}
    for caller, (_, at_open, at_others) in CALLERS.items():
        yield caller, words.get(at_open, str(at_open)), words.get(at_others, str(at_others))


def test_the_page_has_this_table() -> None:
    """The table of the documentation equals this one."""
    text = PAGE.read_text()
    for caller, at_open, at_others in _rows():
        assert f"| {caller} | {at_open} | {at_others} |" in text


def test_all_paths_are_listed() -> None:
    """A new page must be added to the list above."""

    async def main() -> set[str]:
        async with served(_setting(Authority().pem)) as reader:
            return set(reader.server.pages.paths)

    known = {path.rstrip("/") for path in PATHS}
    assert {path for path in asyncio.run(main()) if path not in known and not path.startswith(OPEN)} == set()


def test_other_methods_change_nothing() -> None:
    """POST, DELETE and PATCH are rejected even for authorized users."""

    async def main() -> list[int]:
        setting = _setting(Authority().pem)
        setting.reviews.allowed |= {("reader", verb, path) for path in PATHS for verb in ("post", "delete", "patch")}
        async with served(setting) as reader:
            methods = ("POST", "DELETE", "PATCH")
            return [
                (await reader.get(path, token="reader", method=method)).status for path in PATHS for method in methods
            ]

    assert set(asyncio.run(main())) <= {404, 405}
