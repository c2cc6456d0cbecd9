"""Leader election."""

from kubestow.reporting.metrics.instruments import ALPHA, Counter, Gauge
from kubestow.reporting.metrics.registry import Registry


class ElectionMetrics:
    """Observes the election."""

    def __init__(self, registry: Registry) -> None:
        self._leads = registry.add(
            Gauge(
                "leader_election_master_status",
                ALPHA,
                "Whether this instance leads, 1 or 0, by the name of the lease.",
                "name",
            )
        )
        self._slow = registry.add(
            Counter(
                "leader_election_slowpath_total",
                ALPHA,
                "How often renewing a lease took more than one request, by the name of the lease.",
                "name",
            )
        )

    def leading(self, lease: str, leads: bool) -> None:
        self._leads.set(int(leads), lease)

    def slow_renewal(self, lease: str) -> None:
        self._slow.inc(lease)

    def new_leader(self, lease: str, identity: str) -> None:
        """Who leads is no number."""
