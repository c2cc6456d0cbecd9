"""Bodies that are nested deeply, or describe something huge: accepted up to a limit, rejected beyond it."""

import asyncio
import json
from typing import Any

import pytest

from kubestow.api.files.yaml_documents import MAX_DEPTH
from support.apiserver.direct import Direct

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = "application/json-patch+json"
HEAD = b'"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"%b"}'
WHOLE = b"{" + HEAD + b',"spec":%b}'
APPLY = "application/apply-patch+yaml"
REQUESTS: dict[str, tuple[str, str, str, bytes]] = {
    "create": ("POST", THINGS, "application/json", WHOLE % (b"new", b"%b")),
    "create, strictly": ("POST", f"{THINGS}?fieldValidation=Strict&fieldManager=m", "application/json",
                         WHOLE % (b"new", b"%b")),
    "create, as YAML": ("POST", THINGS, "application/yaml", b"# YAML\n" + WHOLE % (b"new", b"%b")),
    "replace": ("PUT", f"{THINGS}/old", "application/json", WHOLE % (b"old", b"%b")),
    "merge patch": ("PATCH", f"{THINGS}/old", "application/merge-patch+json", b'{"spec":%b}'),
    "JSON patch": ("PATCH", f"{THINGS}/old", JSON_PATCH, b'[{"op":"add","path":"/spec","value":%b}]'),
    "apply": ("PATCH", f"{THINGS}/old?fieldManager=m&force=true", APPLY, WHOLE % (b"old", b"%b")),
    "delete": ("DELETE", f"{THINGS}/old", "application/json", b'{"kind":"DeleteOptions","x":%b}'),
}  # fmt: skip
SHAPES = {"objects": (b'{"a":', b"1", b"}"), "lists": (b"[", b"", b"]")}


async def _serving() -> Direct:
    """Return a server with a kind that accepts everything, and an object of it."""
    direct = Direct()
    names = {"plural": "things", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    assert direct.call("POST", DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": spec})[0] == 201
    await asyncio.sleep(0)
    assert direct.call("POST", THINGS, {"metadata": {"name": "old"}})[0] == 201
    return direct


def _nested(shape: str, depth: int) -> bytes:
    begin, inner, end = SHAPES[shape]
    return begin * depth + inner + end * depth


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", REQUESTS)
def test_depth_is_limited(name: str, shape: str) -> None:
    """What is accepted can be read, changed and deleted; everything deeper is rejected, however deep it is."""
    method, path, media, body = REQUESTS[name]
    above = body.count(b"{", 0, body.index(b"%b")) - body.count(b"}", 0, body.index(b"%b"))
    above += body.count(b"[", 0, body.index(b"%b"))

    async def main() -> list[int]:
        direct = await _serving()
        deepest = MAX_DEPTH - above
        found = []
        for depth in (deepest + 1, 300, 600, 1_100, 100_000, deepest):
            status, answer = direct.call(method, path, body % _nested(shape, depth), media)
            assert status < 300 or "nested" in answer["message"]
            found.append(status)
        for one in ("old", "new") if method != "DELETE" else ():
            for accept in ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"):
                assert direct.send("GET", THINGS, accept=accept).response is not None
            patch = {"metadata": {"labels": {"a": "b"}}}
            merge = "application/merge-patch+json"
            status, _ = direct.call("PATCH", f"{THINGS}/{one}?fieldManager=x", patch, merge)
            assert status == (404 if one == "new" and "create" not in name else 200)
            assert direct.call("DELETE", f"{THINGS}/{one}")[0] == status
        return found

    *rejected, accepted = asyncio.run(main())
    assert rejected == [400] * 5
    assert accepted in (200, 201)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        (
            [{"op": "copy", "from": "/data", "path": f"/data/x{number}"} for number in range(60)],
            "may copy at most 3145728 bytes",
        ),
        ([{"op": "add", "path": "/x" * 1_000, "value": 1}], "more than 200 parts"),
        ([{"op": "add", "path": "/x" * depth, "value": {}} for depth in range(1, 200)]
         + [{"op": "add", "path": "/x" * 200, "value": {"y": {}}}], "nested too deeply"),
        ([{"op": "copy", "from": 5, "path": "/data/a"}], "Invalid 'from'"),
    ],
    ids=["copies of copies", "a deep path", "deeper with each operation", "no path"],
)  # fmt: skip
def test_a_json_patch_cannot_describe_something_huge(operations: list[dict[str, Any]], message: str) -> None:
    """A few hundred bytes could otherwise fill the memory."""

    async def main() -> tuple[int, Any]:
        direct = Direct()
        direct.call("POST", CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "b"}})
        status, answer = direct.call("PATCH", f"{CONFIG_MAPS}/c", json.dumps(operations).encode(), JSON_PATCH)
        return status, answer

    status, answer = asyncio.run(main())
    assert status in (400, 422)
    assert message in answer["message"]
