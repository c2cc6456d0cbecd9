"""The audit log: one line of JSON for each request, in the format of kube-apiserver's Metadata level.

Requests are recorded when they are answered, watches when they start. Requests for health, discovery and schemas
are left out, as they concern no resource.
"""

import os
import time
import uuid
from pathlib import Path
from typing import Any

from kubestow.api.timestamps import format_micro_time
from kubestow.apiserver.files import restrict
from kubestow.apiserver.objects.intent import User
from kubestow.apiserver.rest import paths
from kubestow.apiserver.rest.paths import Target
from kubestow.apiserver.store.records import encode
from kubestow.server.http.messages import Request, Response
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

LEVEL = "Metadata"


class AuditLog:
    """An audit log that appends to a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        restrict(handle, 0o600)
        self._file = os.fdopen(handle, "ab", buffering=0)
        self._path = path
        self.recorded = self.failed = 0
        """Number of events that were written, and of those that could not be."""

    def record(self, request: Request, target: Target, response: Response | None) -> None:
        """Write a line for a request to a resource; `response` is None for a watch."""
        reference = {
            "resource": target.resource.plural,
            "namespace": target.namespace,
            "name": target.name,
            "apiGroup": target.resource.group,
            "apiVersion": target.resource.version,
            "subresource": target.sub,
        }
        query = request.raw_query.decode("latin-1")
        now = format_micro_time(time.time())
        line: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": LEVEL,
            "auditID": str(uuid.uuid4()),
            "stage": "ResponseStarted" if response is None else "ResponseComplete",
            "requestURI": request.path + (f"?{query}" if query else ""),
            "verb": paths.verb_of(request, target),
            "userAgent": request.header(b"user-agent"),
            "objectRef": {key: value for key, value in reference.items() if value},
            "responseStatus": {"metadata": {}, "code": 200 if response is None else response.status},
            "requestReceivedTimestamp": now,
            "stageTimestamp": now,
        }
        if request.annotations:
            line["annotations"] = {
                key: value if isinstance(value, str) else encode(value).decode()
                for key, value in request.annotations.items()
            }
        user: User | None = request.user
        if request.impersonation is not None:
            line["impersonatedUser"] = request.impersonation.user.info()
            if request.impersonation.constraint:
                line["authenticationMetadata"] = {"impersonationConstraint": request.impersonation.constraint}
            user = request.impersonation.author
        if user is not None:
            line["user"] = user.info()
        try:
            self._file.write(encode(line) + b"\n")
            self.recorded += 1
        except OSError as error:
            self.failed += 1
            log.error("Failed to write to the audit log", err=error, file=self._path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
