"""docs/reference/kube-scheduler.md: it says what is, of every flag and of every endpoint."""

import asyncio
import re

from kubestow.cli.scheduler.flags import FLAGS
from support.project_scripts import load_script
from support.reference import REFERENCE, with_reference
from support.server.serving import Setting, served

script = load_script("kube_scheduler_page")


def _recorded() -> dict[str, tuple[str, str]]:
    """Type and default of every flag of kube-scheduler, as its help shows them; defaults on later lines are missing."""
    found = {}
    for line in (REFERENCE / "v1.37/flags.txt").read_text().splitlines():
        flag = re.fullmatch(r"--(\S+?)(?:\[=.*\]| (\S+))??(?: \(default (.*)\))?", line)
        if flag is not None:
            name, kind, default = flag.groups("")
            found[name] = (kind, default)
    return found


def test_the_page_is_current() -> None:
    """Run scripts/kube_scheduler_page.py to write it again."""
    assert script.PAGE.read_text() == script.page()


@with_reference
def test_every_flag_of_kube_scheduler_is_there() -> None:
    """With its type and default; the page lists exactly these as flags of kube-scheduler."""
    recorded = _recorded()
    assert recorded.pop("help") == ("", "")
    mine = {flag.name: (flag.type.name, flag.default_text) for flag in FLAGS.values()}
    assert {name: (mine[name][0], mine[name][1] if recorded[name][1] else "") for name in recorded} == recorded
    own = {
        flag.name
        for group, flags in script.GROUPS.items()
        for flag in flags
        if script.compared(group, flag)[0] == "own"
    }
    assert own == mine.keys() - recorded.keys()


def test_every_endpoint_is_there() -> None:
    """The paths that are served are the documented ones."""

    async def paths() -> list[str]:
        async with served(Setting()) as reader:
            return reader.server.pages.paths

    mine = {path for path in asyncio.run(paths()) if not re.fullmatch(r"/(healthz|livez|readyz)/.*", path)}
    assert mine | {"/debug/decisions", "/ui"} == script.ENDPOINTS.keys()
