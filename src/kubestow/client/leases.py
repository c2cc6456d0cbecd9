"""The Lease that instances compete for: read, created and updated, with a record of who holds it.

The lease last seen is kept as the server's JSON and sent back with a new spec, so that its resourceVersion makes the
server refuse an update by anyone who has not seen the latest.
"""

from typing import Any

from msgspec import Struct

from kubestow.client.requests import Requests


class Record(Struct, frozen=True):
    """Who holds a lease: the meaningful part of its spec."""

    holder: str = ""
    seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    strategy: str = ""
    """How the API server chooses the holder, where it does."""
    preferred: str = ""
    """Whom the API server has chosen to come next; the holder's term is over then."""


class LeaseLock:
    """One lease, as one contender sees it."""

    def __init__(self, requests: Requests, namespace: str, name: str, identity: str) -> None:
        if not identity:
            raise ValueError("an instance that competes for a lease needs an identity")
        self.namespace = namespace
        self.name = name
        self.identity = identity
        self._requests = requests
        self._lease: dict[str, Any] = {}

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def metadata(self) -> dict[str, Any]:
        """Of the lease last seen."""
        found: dict[str, Any] = self._lease.get("metadata") or {}
        return found

    async def read(self) -> Record:
        """Raises NotFoundError where there is none."""
        self._lease = await self._requests.get_lease(self.namespace, self.name)
        spec = self._lease.get("spec") or {}
        return Record(
            holder=spec.get("holderIdentity") or "",
            seconds=spec.get("leaseDurationSeconds") or 0,
            acquired=spec.get("acquireTime") or "",
            renewed=spec.get("renewTime") or "",
            transitions=spec.get("leaseTransitions") or 0,
            strategy=spec.get("strategy") or "",
            preferred=spec.get("preferredHolder") or "",
        )

    async def create(self, record: Record) -> None:
        """Raises AlreadyExistsError where somebody was faster."""
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": _spec(record),
        }
        self._lease = await self._requests.create_lease(self.namespace, lease)

    async def update(self, record: Record) -> None:
        """Raises ConflictError where somebody changed it since it was read."""
        lease = {
            **self._lease,
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "spec": _spec(record),
        }
        self._lease = await self._requests.put_lease(self.namespace, self.name, lease)


def _spec(record: Record) -> dict[str, Any]:
    chosen = {"strategy": record.strategy} if record.strategy else {}
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.seconds,
        "acquireTime": record.acquired or None,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
        **chosen,
    }
