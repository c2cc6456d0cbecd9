"""The pages of the documentation, taken apart: commands to type, their output, and files to save."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support.repository import ROOT

PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *(ROOT / folder / "README.md" for folder in ("deploy", "examples", "tests")),
]

TESTED_APART = {
    "docs/how-to/migrate-from-policy.md": "tests/cli/test_migrate_from_policy.py",
}
"""Pages with a test of their own, which runs what they show."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"\A# (\S+\.(?:py|yaml|json|csv))\n")


class Typed(NamedTuple):
    """A command and what it answers; no lines if the page does not show it."""

    command: str
    answer: list[str]


class File(NamedTuple):
    """A file to save: a block whose first line is a comment with the file's name."""

    name: str
    text: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a page: language and text."""
    yield from _FENCE.findall(page.read_text())


def steps(page: Path) -> Iterator[Typed | File]:
    """What a page has its reader do, in order."""
    for language, text in blocks(page):
        if language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *answer = part.replace("\\\n", "").splitlines()
                yield Typed(command, answer)
        elif (named := _FILE.match(text)) is not None:
            yield File(named[1], text)


def commands(page: Path) -> list[Typed]:
    return [step for step in steps(page) if isinstance(step, Typed)]
