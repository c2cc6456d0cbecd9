"""A cache of findings, so that a search for an equal pod does not try the same rows again.

The findings for a row depend on the signature of the pod, on the version of the row and on the disruption budgets. The
cache is keyed by signature. Before findings are used again, the rows that have changed since are discarded, or all rows
if the budgets have changed.
"""

from collections.abc import Hashable

from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets, budgets_of
from kubestow.scheduler.plugins.default_preemption.findings import Findings

_MAX_SIGNATURES = 8


class _CacheEntry:
    """Findings, and the versions for which they are valid."""

    __slots__ = ("budgets", "findings", "nominated_row_of_last", "version")

    def __init__(self, findings: Findings, version: int, budgets: Budgets) -> None:
        self.findings = findings
        self.version = version
        self.budgets = budgets
        self.nominated_row_of_last: int | None = None
        """The nominated row of the last pod: its findings are valid for that pod only."""


class FindingsCache:
    """The findings of the last few signatures."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._entries: dict[Hashable, _CacheEntry] = {}
        self._budgets = Budgets({})
        self._budgets_version = 0

    def budgets(self) -> Budgets:
        """Return the current budgets; the same object while they are equal."""
        listed = self._cluster.listers.disruption_budgets
        if listed.version != self._budgets_version:
            self._budgets_version = listed.version
            current = budgets_of(listed)
            if current != self._budgets:
                self._budgets = current
        return self._budgets

    def findings(self, signature: Hashable | None, nominated_row: int | None = None) -> Findings:
        """Return the findings for pods with a signature; without one, empty findings, which are not cached.

        The nominated row of the pod is always untried.
        """
        table, budgets = self._cluster.nodes, self.budgets()
        known = self._entries.pop(signature, None)
        if known is None or known.findings.capacity < table.size:
            known = _CacheEntry(Findings(table.capacity), table.changes.last, budgets)
        if known.budgets is not budgets:
            known.findings.discard(slice(None))
        elif known.version < table.changes.last:
            known.findings.discard(table.changes.since(known.version))
        if known.nominated_row_of_last is not None or nominated_row is not None:
            known.findings.discard([row for row in (known.nominated_row_of_last, nominated_row) if row is not None])
            known.nominated_row_of_last = nominated_row
        known.version, known.budgets = table.changes.last, budgets
        if signature is not None:
            self._entries[signature] = known
            if len(self._entries) > _MAX_SIGNATURES:
                del self._entries[next(iter(self._entries))]
        return known.findings
