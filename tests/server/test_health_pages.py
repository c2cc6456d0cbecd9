"""Health pages: the result, brief or verbose, for all checks or a single one."""

import asyncio

import pytest

from kubestow.server.health import Check
from support.server.serving import Setting, served

WELL = Check("first", lambda: None)
ILL = Check("second", lambda: "it hurts")


def _ask(*paths: str, health: tuple[Check, ...] = (), ready: tuple[Check, ...] = ()) -> list[tuple[int, str]]:
    async def main() -> list[tuple[int, str]]:
        async with served(Setting(health=health, ready=ready)) as reader:
            answers = [await reader.get(path) for path in paths]
            return [(answer.status, answer.text) for answer in answers]

    return asyncio.run(main())


def test_all_checks_pass() -> None:
    """The page contains ok; with ?verbose the checks."""
    short, long, alive = _ask("/readyz", "/readyz?verbose", "/livez", ready=(WELL,))
    assert short == (200, "ok")
    assert long == (200, "[+]first ok\nreadyz check passed\n")
    assert alive == (200, "ok")


def test_a_check_fails() -> None:
    """500 with all checks but without the reasons, which are only on the pages of the checks."""
    status, text = _ask("/healthz", health=(WELL, ILL))[0]
    assert (status, text) == (500, "[+]first ok\n[-]second failed: reason withheld\nhealthz check failed\n")


def test_a_check_has_a_page() -> None:
    """It is not open to all unless a flag makes it so."""

    async def main() -> None:
        setting = Setting(health=(WELL, ILL), open_paths=("/healthz/*",))
        async with served(setting) as reader:
            assert (await reader.get("/healthz/first")).text == "ok"
            answer = await reader.get("/healthz/second")
            assert (answer.status, answer.text) == (500, "internal server error: it hurts\n")
            assert (await reader.get("/healthz")).status == 403

    asyncio.run(main())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?exclude=second", (200, "ok")),
        ("?exclude=second&verbose", (200, "[+]first ok\n[+]second excluded: ok\nhealthz check passed\n")),
        (
            "?exclude=second&exclude=third&verbose=1",
            (
                200,
                (
                    "[+]first ok\n[+]second excluded: ok\n"
                    'warn: some health checks cannot be excluded: no matches for "third"\nhealthz check passed\n'
                ),
            ),
        ),
    ],
)
def test_checks_can_be_excluded(query: str, expected: tuple[int, str]) -> None:
    """By name, several times; unknown names are reported."""
    assert _ask(f"/healthz{query}", health=(WELL, ILL)) == [expected]
