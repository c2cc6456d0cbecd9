"""What is remembered from one search to the next, so that pods that are equal do not try the same rows again.

Whether evicting pods of a row helps depends on what the pod's signature tells of it, on the row at its version, and on
the disruption budgets. So findings are kept by signature; before they are used again, the rows that have changed since
are forgotten, or all of them if the budgets have changed.
"""

from collections.abc import Hashable

from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets, budgets_of
from kubestow.scheduler.plugins.default_preemption.findings import Findings

_KEPT_SIGNATURES = 8


class _Remembered:
    """Findings, and what they are true of."""

    __slots__ = ("budgets", "findings", "row_of_one", "version")

    def __init__(self, findings: Findings, version: int, budgets: Budgets) -> None:
        self.findings = findings
        self.version = version
        self.budgets = budgets
        self.row_of_one: int | None = None
        """The row that the last pod was nominated to: what was found out about it is true of that pod only."""


class Memory:
    """Findings of the last few signatures that were searched for."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._remembered: dict[Hashable, _Remembered] = {}
        self._budgets = Budgets({})
        self._budgets_version = 0

    def budgets(self) -> Budgets:
        """The budgets as they stand now; the same object for as long as nothing that matters has changed."""
        listed = self._cluster.listers.disruption_budgets
        if listed.version != self._budgets_version:
            self._budgets_version = listed.version
            current = budgets_of(listed)
            if current != self._budgets:
                self._budgets = current
        return self._budgets

    def findings(self, signature: Hashable | None, nominated_row: int | None = None) -> Findings:
        """What is known for pods of a signature; for one without, nothing, and it will not be remembered.

        For a pod that is nominated to a row, nothing is known of that row.
        """
        table, budgets = self._cluster.nodes, self.budgets()
        known = self._remembered.pop(signature, None)
        if known is None or known.findings.capacity < table.size:
            known = _Remembered(Findings(table.capacity), table.changes.last, budgets)
        if known.budgets is not budgets:
            known.findings.forget(slice(None))
        elif known.version < table.changes.last:
            known.findings.forget(table.changes.since(known.version))
        if known.row_of_one is not None or nominated_row is not None:
            known.findings.forget([row for row in (known.row_of_one, nominated_row) if row is not None])
            known.row_of_one = nominated_row
        known.version, known.budgets = table.changes.last, budgets
        if signature is not None:
            self._remembered[signature] = known
            if len(self._remembered) > _KEPT_SIGNATURES:
                del self._remembered[next(iter(self._remembered))]
        return known.findings
