"""A server with one lease that behaves like an API server: versions, conflicts, not found."""

import asyncio
from typing import Any

from support.client.scripted import Answer, Request


class LeaseServer:
    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 100
        self.down = False
        self.unreachable: set[str] = set()
        """User agents of the contenders whose requests are ignored."""
        self.writes: list[tuple[float, dict[str, Any]]] = []

    @property
    def holder(self) -> str:
        return self.lease["spec"]["holderIdentity"] if self.lease else ""

    async def __call__(self, request: Request, answer: Answer) -> None:
        if request.headers["user-agent"] in self.unreachable:
            await answer.client_left()
        elif self.down:
            answer.error(503, "ServiceUnavailable", "down")
        elif "/leases" not in request.path:
            answer.reply(201)
        elif request.method == "GET":
            if self.lease is None:
                answer.error(404, "NotFound", "no such lease")
            else:
                answer.reply(200, self.lease)
        elif request.method == "POST":
            if self.lease is not None:
                answer.error(409, "AlreadyExists")
            else:
                self._write(request.json, answer, 201)
        else:
            assert self.lease is not None
            if request.json["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                answer.error(409, "Conflict", "the object has been modified")
            else:
                self._write(request.json, answer, 200)

    def _write(self, lease: dict[str, Any], answer: Answer, status: int) -> None:
        self.version += 1
        lease["metadata"] |= {"resourceVersion": str(self.version), "uid": "lease-uid"}
        self.lease = lease
        self.writes.append((asyncio.get_running_loop().time(), lease["spec"]))
        answer.reply(status, lease)
