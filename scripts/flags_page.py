"""Write docs/reference/flags.md from the table of flags."""

from pathlib import Path

from kubestow.cli.scheduler.flags import GROUPS, Flag

PAGE = Path(__file__).parents[1] / "docs/reference/flags.md"

INTRODUCTION = """\
# Flags of `kubestow scheduler`

<!-- Written by scripts/flags_page.py; change src/kubestow/cli/scheduler/flags.py and run it again. -->

All flags of kube-scheduler v1.36, with its names, types and defaults, and those of v1.22 about the
[legacy Policy](../how-to/migrate-from-policy.md).

- A value follows after `=` or a space. A switch (type bool) needs none: `--leader-elect` is `--leader-elect=true`;
  `--leader-elect=false` turns it off. After a space, as in `--leader-elect false`, it is refused: switches take no
  argument. Underscores stand for dashes: `--leader_elect`.
- Lists are separated by commas and add up when the flag is repeated; of other flags the last one counts.
- With `--config` the deprecated flags are ignored but for those about a Policy, which wins over profiles and extenders
  in the file; the flags about leader election win over the file.
- Flags without effect are accepted, so that the command line of kube-scheduler can be taken over; at the start the log
  warns of those that were given, and says why. [Compared with kube-scheduler](kube-scheduler.md) has them flag by flag.
- An unknown flag or a bad value is told with the flag's name, and the exit code is 1.
"""


def page() -> str:
    """The text of the page."""
    return INTRODUCTION + "".join(_table(group, flags) for group, flags in GROUPS.items())


def _table(group: str, flags: tuple[Flag, ...]) -> str:
    lines = ["", f"## {group}", "", "| flag | type | default | |", "|---|---|---|---|"]
    for flag in flags:
        name = f"`-{flag.short}`, `--{flag.name}`" if flag.short else f"`--{flag.name}`"
        words = flag.help + (f" **No effect**: {flag.ignored}." if flag.ignored else "")
        default = f"`{flag.shown_default}`" if flag.shown_default else ""
        lines.append(f"| {name} | {flag.type.name or 'bool'} | {default} | {words.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
