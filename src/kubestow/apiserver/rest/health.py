"""Health pages: /healthz, /livez and /readyz, with details under `?verbose`, and a page for each check."""

from kubestow.apiserver.errors import no_such_path
from kubestow.server.http.messages import Response

_CHECKS = ("ping", "etcd")
"""Kubernetes' names: `ping` is the server itself, `etcd` its storage."""


def page(parts: list[str], query: dict[str, str], failure: str | None) -> Response:
    """Return a health page; `failure` describes the failure of the storage, if any."""
    name, *check = parts
    if len(check) > 1 or (check and check[0] not in _CHECKS):
        raise no_such_path()
    failed = {"etcd"} if failure and check != ["ping"] else set[str]()
    if check:
        text = f"unhealthy: {failure}\n" if failed else "ok"
    elif failed or "verbose" in query:
        lines = [f"[-]{one} failed: {failure}" if one in failed else f"[+]{one} ok" for one in _CHECKS]
        text = "\n".join([*lines, f"{name} check {'failed' if failed else 'passed'}", ""])
    else:
        text = "ok"
    return Response(500 if failed else 200, text.encode(), content_type=b"text/plain; charset=utf-8")
