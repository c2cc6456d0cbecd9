"""Write docs/reference/flags.md from the table of flags."""

from pathlib import Path

from kubestow.cli.scheduler.flags import GROUPS, Flag

PAGE = Path(__file__).parents[1] / "docs/reference/flags.md"

INTRODUCTION = """\
# Flags of `kubestow scheduler`

<!-- Written by scripts/flags_page.py; change src/kubestow/cli/scheduler/flags.py and run it again. -->

All flags of kube-scheduler v1.37, with its names, types and defaults, and those of v1.22 about the
[legacy Policy](../how-to/migrate-from-policy.md).

- A value follows after `=` or a space. A switch (type bool) needs none: `--leader-elect` is `--leader-elect=true`;
  `--leader-elect=false` turns it off. A value after a space, as in `--leader-elect false`, is rejected. Underscores can
  replace dashes: `--leader_elect`.
- Lists are separated by commas; the lists of a repeated flag are joined. For other flags, the last value applies.
- With `--config` the deprecated flags are ignored, except those for a Policy, which overrides profiles and extenders in
  the file. The flags for leader election override the file.
- Flags without effect are accepted, so that a command line of kube-scheduler can be reused; at start-up the log
  contains a warning with the reason for each of them. [Compared with kube-scheduler](kube-scheduler.md) lists them.
- An unknown flag or an invalid value is reported with the flag's name, and the exit code is 1.
"""


def page() -> str:
    """Return the text of the page."""
    return INTRODUCTION + "".join(_table(group, flags) for group, flags in GROUPS.items())


def _table(group: str, flags: tuple[Flag, ...]) -> str:
    lines = ["", f"## {group}", "", "| flag | type | default | |", "|---|---|---|---|"]
    for flag in flags:
        name = f"`-{flag.short}`, `--{flag.name}`" if flag.short else f"`--{flag.name}`"
        text = flag.help + (f" **No effect**: {flag.ignored}." if flag.ignored else "")
        default = f"`{flag.default_text}`" if flag.default_text else ""
        lines.append(f"| {name} | {flag.type.name or 'bool'} | {default} | {text.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
