"""/flagz and /statusz: as text by default; as JSON, YAML or CBOR if the Accept header names the kind."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml

from kubestow.server import cbor
from kubestow.server.health import TEXT
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request, Response
from kubestow.telemetry.build import KUBERNETES, BuildInfo

COMPONENT = "kube-scheduler"
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_GROUP = "config.k8s.io"
_VERSION, _OLD_VERSION = "v1beta1", "v1alpha1"
_FORMATS: dict[str, Callable[[Any], bytes]] = {
    "application/json": msgspec.json.encode,
    "application/yaml": lambda body: yaml.safe_dump(body).encode(),
    "application/cbor": cbor.encode,
}


def flagz(request: Request, flags: Mapping[str, str], *, serves_cbor: bool) -> Response:
    """Return the page with the value of every flag."""
    lines = [f"{name}={value}" for name, value in sorted(flags.items())]
    return _answer(request, "Flagz", lines, {"flags": dict(flags)}, serves_cbor)


def statusz(
    request: Request, started: float, now: float, paths: Sequence[str], emulated: str, *, serves_cbor: bool
) -> Response:
    """Return the page with the versions, the start time and the paths of the server."""
    build = BuildInfo()
    start = datetime.fromtimestamp(started, UTC)
    uptime = int(now - started)
    minutes, seconds = divmod(uptime, 60)
    hours, minutes = divmod(minutes, 60)
    lines = [
        f"Started: {start.strftime('%a %b %d %H:%M:%S UTC %Y')}",
        f"Up: {hours} hr {minutes:02d} min {seconds:02d} sec",
        f"Go version: {build.go_version}",
        f"Binary version: {KUBERNETES}",
        f"Emulation version: {emulated}",
        f"Paths: {' '.join(paths)}",
    ]
    fields = {
        "startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "uptimeSeconds": uptime,
        "goVersion": build.go_version,
        "binaryVersion": KUBERNETES,
        "emulationVersion": emulated,
        "paths": list(paths),
    }
    return _answer(request, "Statusz", lines, fields, serves_cbor)


def _answer(request: Request, kind: str, lines: list[str], fields: dict[str, Any], serves_cbor: bool) -> Response:
    """Return the page in the first supported format of the Accept header. Raises ApiError if none is supported."""
    forms = [form for form in _FORMATS if serves_cbor or form != "application/cbor"]
    accept = request.header(b"accept").replace(" ", "") or "*/*"
    for part in accept.split(","):
        form, *parameters = part.split(";")
        settings = dict(parameter.partition("=")[::2] for parameter in parameters)
        if form in ("*/*", "text/*", "text/plain"):
            text = "\n".join((f"\n{COMPONENT} {kind.lower()}", _WARNING, "", *lines, ""))
            return Response(200, text.encode(), content_type=TEXT)
        wanted = (settings.get("g"), settings.get("as"))
        if form in forms and wanted == (_GROUP, kind) and settings.get("v") in (_VERSION, _OLD_VERSION):
            return _structured(kind, form, settings["v"], fields)
    forms.insert(2, "text/plain")
    raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(forms)}")


def _structured(kind: str, form: str, version: str, fields: dict[str, Any]) -> Response:
    body = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": COMPONENT}, **fields}
    written = _FORMATS[form](body)
    old = f'299 - "This version of the {kind.lower()} endpoint is deprecated. Please use a newer version."'
    warning = (("Warning", old),) if version == _OLD_VERSION else ()
    return Response(200, written, f"{form};g={_GROUP};v={version};as={kind}".encode(), warning)
