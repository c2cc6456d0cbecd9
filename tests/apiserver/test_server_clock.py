"""Times that the server writes are those of its own clock."""

import asyncio
from typing import Any

import pytest

from apiserver.direct import Direct
from apiserver.test_custom_kinds import DEFINITIONS, definition
from kubestow.apiserver.store.store import Store

MAPS = "/api/v1/namespaces/default/configmaps"
THEN = "1970-01-12T13:46:40Z"


class Still:
    """A clock that stands."""

    def now(self) -> float:
        return 1_000_000.0


def run(body: Any) -> None:
    """Runs a test on an application whose clock stands."""

    async def main() -> None:
        await body(Direct(Store(clock=Still())))

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["json", "apply-patch+yaml"])
def test_owners_of_fields(kind: str) -> None:
    """managedFields carry the server's time, after an update and after an apply."""

    async def body(direct: Direct) -> None:
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
        if kind == "json":
            direct.call("POST", f"{MAPS}?fieldManager=me", document)
            path, document = f"{MAPS}/a?fieldManager=you", {**document, "data": {"x": "2"}}
            _, written = direct.call("PUT", path, document)
        else:
            _, written = direct.call("PATCH", f"{MAPS}/a?fieldManager=me", document, f"application/{kind}")
        assert {line["time"] for line in written["metadata"]["managedFields"]} == {THEN}

    run(body)


def test_conditions_of_definitions() -> None:
    """A definition is established at the server's time."""

    async def body(direct: Direct) -> None:
        direct.call("POST", DEFINITIONS, definition())
        await asyncio.sleep(0)
        _, listed = direct.call("GET", DEFINITIONS)
        conditions = listed["items"][0]["status"]["conditions"]
        assert {one["lastTransitionTime"] for one in conditions} == {THEN}

    run(body)
