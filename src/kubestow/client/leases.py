"""The Lease that instances compete for: read, created and updated, with a record of its holder.

The lease last seen is kept as the server's JSON and sent back with a new spec, so that the server rejects an update
whose resourceVersion is not the latest.
"""

from typing import Any

from msgspec import Struct

from kubestow.client.requests import Body, Requests, path_of


class Record(Struct, frozen=True):
    """The holder of a lease and its times: the relevant part of the spec."""

    holder: str = ""
    seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    strategy: str = ""
    """The strategy by which the API server chooses the holder, if it does."""
    preferred: str = ""
    """The next holder that the API server has chosen; if set, the current holder must stop."""


class LeaseLock:
    """One lease, accessed by one contender."""

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
        """The metadata of the lease last seen."""
        found: dict[str, Any] = self._lease.get("metadata") or {}
        return found

    async def read(self) -> Record:
        """Read the lease. Raises NotFoundError if it does not exist."""
        self._lease = await self._send("GET", self.name)
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
        """Create the lease. Raises AlreadyExistsError if it exists already."""
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": _spec(record),
        }
        self._lease = await self._send("POST", body=lease)

    async def update(self, record: Record) -> None:
        """Update the lease. Raises ConflictError if it changed since it was read."""
        lease = {
            **self._lease,
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "spec": _spec(record),
        }
        self._lease = await self._send("PUT", self.name, body=lease)

    async def _send(self, method: str, *name: str, body: Body = b"") -> dict[str, Any]:
        path = path_of("coordination.k8s.io/v1", "leases", self.namespace, *name)
        return await self._requests.fetch(dict[str, Any], method, path, body)


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
