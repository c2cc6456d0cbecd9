"""What is told about a pod: the decision, where it comes from, and what would change it."""

from typing import Any, NamedTuple

import msgspec

from kubestow.decisions.schema import ERROR, Decision
from kubestow.explaining.against import Against, against
from kubestow.explaining.dry_run import DryRun
from kubestow.explaining.would_fit import Suggestion, would_fit_if


class Explanation(NamedTuple):
    """A decision and more beside."""

    decision: Decision
    source: str
    """`dry run`, or `scheduler` if it is the scheduler's own record."""
    would_fit_if: tuple[Suggestion, ...] = ()
    against: Against | None = None
    notes: tuple[str, ...] = ()
    """What the reader must know about how it was found."""

    def tree(self) -> dict[str, Any]:
        """As JSON has it: the fields of the decision, and what comes beside them."""
        more = {"source": self.source, "wouldFitIf": self.would_fit_if, "against": self.against, "notes": self.notes}
        return msgspec.to_builtins(self.decision) | {  # type: ignore[no-any-return]
            name: msgspec.to_builtins(value) for name, value in more.items() if value
        }


def explained(run: DryRun, node: str = "", notes: tuple[str, ...] = ()) -> Explanation:
    """A dry run with what would help, or with what `node` has against the pod; raises ExplainError."""
    decision = run.decision()
    if decision.outcome == ERROR and not decision.nodes:
        # Nothing was judged: there is nothing to compare with.
        return Explanation(decision, "dry run", notes=notes)
    would_fit = () if decision.chosen or node else tuple(would_fit_if(run))
    return Explanation(decision, "dry run", would_fit, against(run, node) if node else None, notes)
