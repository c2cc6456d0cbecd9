"""What is told about a pod: the decision, where it comes from, and what would change it."""

from typing import Any, NamedTuple

import msgspec

from kubestow.decisions.schema import Decision


class Explanation(NamedTuple):
    """A decision and more beside."""

    decision: Decision
    source: str
    """`dry run`, or `scheduler` if it is the scheduler's own record."""

    def tree(self) -> dict[str, Any]:
        """As JSON has it: the fields of the decision, and what comes beside them."""
        return {**msgspec.to_builtins(self.decision), "source": self.source}
