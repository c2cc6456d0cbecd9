"""Write docs/reference/feature-gates.md from the table of gates."""

from pathlib import Path

from kubestow.config.features import GATES, NOT_BUILT, SCHEDULING_GATES, Gate

PAGE = Path(__file__).parents[1] / "docs/reference/feature-gates.md"

INTRODUCTION = """\
# Feature gates

<!-- Written by scripts/feature_gates_page.py; change src/kubestow/config/features.py and run it again. -->

The gates of kube-scheduler v1.37, with its names, stages and defaults. They are set as there:

    --feature-gates=GenericWorkload=true

- `AllAlpha=true` and `AllBeta=false` set all gates of a stage; a gate that is set by name keeps that setting.
- A locked gate cannot be changed. A gate whose feature does not exist here cannot be enabled.
- A gate that is on needs the gates listed with it on, too.
- `kube:` in front of a name is accepted, as in kube-scheduler.

`--emulated-version=1.36` gives the gates their stages, defaults and locks of v1.36; v1.34 is the oldest. Gates that are
newer are off and cannot be set. Some gates are on by default only if no component is older than
`--min-compatibility-version`, by default the version before the emulated one. If a setting changes nothing here, the
log contains the reason.

All errors are reported at once, one per line, and nothing starts.

## Gates that concern scheduling
"""

OTHERS = """
## Other gates

Kubernetes' components share one list of gates. These are accepted, so that all can share the same list, but
have no effect here.

"""


def page() -> str:
    """Return the text of the page."""
    others = [gate for name, gate in sorted(GATES.items()) if gate not in SCHEDULING_GATES]
    return INTRODUCTION + _table(list(SCHEDULING_GATES)) + OTHERS + _short(others)


def _table(gates: list[Gate]) -> str:
    lines = ["", "| gate | stage | default | needs |", "|---|---|---|---|"]
    for gate in sorted(gates, key=lambda gate: gate.name):
        needs = ", ".join(f"`{need}`" for need in gate.needs)
        lines.append(f"| `{gate.name}` | {gate.stage} | {_default(gate)} | {needs} |")
    return "\n".join(lines) + "\n"


def _short(gates: list[Gate]) -> str:
    return "".join(f"- `{gate.name}` ({gate.stage}, {_default(gate)})\n" for gate in gates)


def _default(gate: Gate) -> str:
    notes = ((gate.locked, ", locked"), (gate.name in NOT_BUILT, ", cannot be enabled"))
    return ("on" if gate.default else "off") + "".join(note for applies, note in notes if applies)


if __name__ == "__main__":
    PAGE.write_text(page())
