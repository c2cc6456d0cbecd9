"""/flagz and /statusz: as text for people, as JSON for who asks for the kind by name in the Accept header."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubestow.http.messages import Request, Response
from kubestow.reporting.build import BuildInfo
from kubestow.server.health import TEXT

COMPONENT = "kube-scheduler"
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_VERSION = "config.k8s.io/v1beta1"


def flagz(request: Request, flags: Mapping[str, str]) -> Response:
    """The value of every flag."""
    if _wants(request, "Flagz"):
        return _json("Flagz", {"flags": dict(flags)})
    lines = "".join(f"{name}={value}\n" for name, value in sorted(flags.items()))
    return Response(200, f"\n{COMPONENT} flagz\n{_WARNING}\n\n{lines}".encode(), content_type=TEXT)


def statusz(request: Request, started: float, now: float, paths: Sequence[str]) -> Response:
    """Which version runs, since when, and what it serves."""
    build = BuildInfo()
    version = f"{build.major}.{build.minor}"
    start = datetime.fromtimestamp(started, UTC)
    uptime = int(now - started)
    if _wants(request, "Statusz"):
        return _json(
            "Statusz",
            {
                "startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "uptimeSeconds": uptime,
                "goVersion": build.go_version,
                "binaryVersion": version,
                "emulationVersion": version,
                "paths": list(paths),
            },
        )
    minutes, seconds = divmod(uptime, 60)
    hours, minutes = divmod(minutes, 60)
    lines = [
        f"Started: {start.strftime('%a %b %d %H:%M:%S UTC %Y')}",
        f"Up: {hours} hr {minutes:02d} min {seconds:02d} sec",
        f"Go version: {build.go_version}",
        f"Binary version: {version}",
        f"Emulation version: {version}",
        f"Paths: {' '.join(paths)}",
    ]
    text = "\n".join(lines)
    return Response(200, f"\n{COMPONENT} statusz\n{_WARNING}\n\n{text}\n".encode(), content_type=TEXT)


def _wants(request: Request, kind: str) -> bool:
    accept = request.header(b"accept")
    return any("application/json" in part and f"as={kind}" in part for part in accept.replace(" ", "").split(","))


def _json(kind: str, fields: dict[str, Any]) -> Response:
    body = {"kind": kind, "apiVersion": _VERSION, "metadata": {"name": COMPONENT}, **fields}
    return Response(200, msgspec.json.encode(body))
