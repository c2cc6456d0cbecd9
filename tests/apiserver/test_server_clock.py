"""All times that the server writes come from its own clock."""

import asyncio
from typing import Any

import pytest

from kubestow.apiserver.store.store import Store
from support.apiserver.crontabs import DEFINITIONS, definition
from support.apiserver.direct import Direct

MAPS = "/api/v1/namespaces/default/configmaps"
THEN = "1970-01-12T13:46:40Z"


class Still:
    """A clock that stands still until it is set."""

    time = 1_000_000.0

    def now(self) -> float:
        return self.time


def run_with_still_clock(body: Any) -> None:
    """Run a test on an application with such a clock."""

    async def main() -> None:
        await body(Direct(Store(clock=Still())))

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["json", "apply-patch+yaml"])
def test_owners_of_fields(kind: str) -> None:
    """managedFields contain the server's time, after an update and after an apply."""

    async def body(direct: Direct) -> None:
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
        if kind == "json":
            direct.call("POST", f"{MAPS}?fieldManager=me", document)
            path, document = f"{MAPS}/a?fieldManager=you", {**document, "data": {"x": "2"}}
            _, written = direct.call("PUT", path, document)
        else:
            _, written = direct.call("PATCH", f"{MAPS}/a?fieldManager=me", document, f"application/{kind}")
        assert {line["time"] for line in written["metadata"]["managedFields"]} == {THEN}

    run_with_still_clock(body)


def test_a_list_is_read_within_five_minutes() -> None:
    """Later its continue token is expired, even if nothing changed."""

    async def body(direct: Direct) -> None:
        for name in "abc":
            direct.call("POST", MAPS, {"metadata": {"name": name}})
        path = f"{MAPS}?limit=1&fieldSelector=metadata.name!=kube-root-ca.crt"
        token = direct.call("GET", path)[1]["metadata"]["continue"]
        clock: Any = direct.store.clock
        clock.time += 200
        status, second = direct.call("GET", f"{path}&continue={token}")
        assert status == 200
        clock.time += 200
        status, rejected = direct.call("GET", f"{path}&continue={second['metadata']['continue']}")
        assert status == 410
        assert direct.call("GET", f"{path}&continue={rejected['metadata']['continue']}")[0] == 200

    run_with_still_clock(body)


def test_conditions_of_definitions() -> None:
    """A definition is established at the server's time."""

    async def body(direct: Direct) -> None:
        direct.call("POST", DEFINITIONS, definition())
        await asyncio.sleep(0)
        _, listed = direct.call("GET", DEFINITIONS)
        conditions = listed["items"][0]["status"]["conditions"]
        assert {one["lastTransitionTime"] for one in conditions} == {THEN}

    run_with_still_clock(body)
