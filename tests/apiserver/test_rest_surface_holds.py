"""Fuzzing of the REST API: every response is valid, and none is an internal error."""

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubestow.apiserver.resources import BY_STORAGE, RESOURCES, Resource
from kubestow.apiserver.rest.bodies import PATCHES
from kubestow.apiserver.schema.types import Choice, ListOf, MapOf, Scalar, Struct, Type
from support.apiserver.direct import Direct
from support.apiserver.seeds import OTHER_NAMES, SEEDS

NAMES = st.sampled_from(["a", "b", "default", "node-1", "A b", "x" * 300, "ü", ""])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "a", "1", "10%", "1Gi", "-1", "2026-01-01T00:00:00Z", "9999-99-99T99:99:99Z", "Always"]),
    st.text(max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def sane(kind: Type, draw: Any, depth: int = 0) -> Any:
    """Generate a value of a type, sometimes of another."""
    if draw(st.integers(0, 40)) == 0:
        return draw(VALUES)
    if isinstance(kind, Choice):
        return draw(st.sampled_from(kind.values))
    if isinstance(kind, ListOf):
        return [sane(kind.item, draw, depth + 1) for _ in range(draw(st.integers(0, 2)))]
    if isinstance(kind, MapOf):
        return {key: sane(kind.value, draw, depth + 1) for key in draw(st.sets(st.sampled_from("abc"), max_size=2))}
    if isinstance(kind, Struct):
        if depth > 6:
            return {}
        names = sorted(kind.fields)
        chosen = draw(st.sets(st.sampled_from(names), max_size=6)) if names else set()
        chosen |= {name for name in names if kind.fields[name].required or name in ("spec", "metadata", "containers")}
        return {name: sane(kind.fields[name].type, draw, depth + 1) for name in sorted(chosen)}
    assert isinstance(kind, Scalar)
    samples: dict[str, Any] = {
        "string": st.sampled_from(["a", "b", "default", "example.com/x", ""]),
        "bool": st.booleans(),
        "int32": st.integers(-1, 3),
        "int64": st.integers(-1, 3),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "bytes": st.sampled_from(["", "YQ=="]),
        "time": st.just("2026-01-01T00:00:00Z"),
        "microtime": st.just("2026-01-01T00:00:00.000000Z"),
        "quantity": st.sampled_from(["1", "100m", "2Gi", "-1"]),
        "intstr": st.sampled_from([0, 1, "50%", "x"]),
        "any": VALUES,
    }
    return draw(samples[kind.name])


@st.composite
def objects(draw: Any, resource: Resource) -> Any:
    """Generate an object of a resource, not always a valid one."""
    obj = sane(resource.schema, draw)
    if isinstance(obj, dict):
        obj.pop("apiVersion", None)
        obj.pop("kind", None)
        if draw(st.booleans()) and isinstance(obj.get("metadata"), dict):
            obj["metadata"] = {"name": draw(NAMES), "labels": {"app": "a"}}
    return obj


QUERIES = st.sampled_from(
    [
        "",
        "watch=1&timeoutSeconds=1",
        "watch=1&resourceVersion=3",
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "limit=1",
        "limit=1&continue=xx",
        "labelSelector=app%3Da,b!%3Dc,d%20in%20(e,f),!g",
        "labelSelector=((",
        "fieldSelector=metadata.name%3Da",
        "fieldSelector=status.phase%3DRunning",
        "resourceVersion=99999999999&resourceVersionMatch=Exact",
        "resourceVersion=2&resourceVersionMatch=Exact",
        "dryRun=All",
        "dryRun=None",
        "fieldValidation=Strict",
        "fieldManager=me&force=true",
        "gracePeriodSeconds=0",
        "propagationPolicy=Foreground",
        "propagationPolicy=Orphan",
    ]
)
ACCEPTS = st.sampled_from(["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"])


@st.composite
def requests(draw: Any) -> tuple[str, str, Any, str]:
    """Generate method, target, body and media type of a request, mostly a valid one."""
    resource = draw(st.sampled_from(RESOURCES))
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced and draw(st.integers(0, 5)):
        base += "/namespaces/default"
    path = f"{base}/{resource.plural}"
    method = draw(st.sampled_from(["POST", "POST", "GET", "PUT", "PATCH", "DELETE"]))
    if method != "POST" and draw(st.integers(0, 3)):
        path += f"/{draw(st.sampled_from(['a', 'b', 'default']))}"
        if resource.subresources and draw(st.booleans()):
            path += f"/{draw(st.sampled_from(resource.subresources))}"
    elif method == "POST" and resource.subresources and not draw(st.integers(0, 3)):
        path += f"/a/{draw(st.sampled_from(resource.subresources))}"
    query = draw(QUERIES)
    target = f"{path}?{query}" if query else path
    media = "application/json"
    body: Any = None
    if method in ("POST", "PUT"):
        body = draw(objects(resource))
    elif method == "PATCH":
        media = draw(st.sampled_from(PATCHES))
        body = draw(objects(resource))
        if media == "application/json-patch+json":
            paths = st.sampled_from(["/spec", "/metadata/labels/a", "/status", "", "/spec/containers/0", "/kind", "x"])
            operation = st.fixed_dictionaries(
                {"op": st.sampled_from(["add", "remove", "replace", "test", "copy", "move"]), "path": paths},
                optional={"value": VALUES, "from": paths},
            )
            body = draw(st.lists(operation, max_size=3))
    return method, target, body, media


@SETTINGS
@given(st.lists(requests(), min_size=1, max_size=12), ACCEPTS)
def test_no_request_is_an_internal_error(sent: list[tuple[str, str, Any, str]], accept: str) -> None:
    """Requests of all kinds, one after another on one server: no 500, and errors have a Status."""

    async def play() -> None:
        direct = Direct()
        for method, target, body, media in sent:
            wire = direct.send(method, target, copy.deepcopy(body), media, accept)
            assert wire.response is not None, (method, target)
            if wire.response.status >= 400:
                status = json.loads(wire.response.body)
                assert status["kind"] == "Status"
                assert status["code"] == wire.response.status != 500, (method, target, body, status)
        direct.watchers.close()

    asyncio.run(play())


def collection_path(resource: Resource) -> str:
    """Return the path at which objects of a resource are created."""
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    return f"{base}/namespaces/default/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all values inside a value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


@pytest.mark.parametrize("storage", sorted(BY_STORAGE))
def test_objects_with_missing_parts_are_accepted_or_rejected(storage: str) -> None:
    """Each part of a valid object is removed or emptied in turn."""
    good = {"metadata": {"generateName": "a"}, **copy.deepcopy(SEEDS[storage])}
    path = collection_path(BY_STORAGE[storage])

    async def play() -> None:
        direct = Direct()
        for where in places(good):
            absent: tuple[Any, ...] = (None, {}, [])
            for instead in absent:
                bad = copy.deepcopy(good)
                holder: Any = bad
                for key in where[:-1]:
                    holder = holder[key]
                if instead is None:
                    del holder[where[-1]]
                else:
                    holder[where[-1]] = instead
                status, answer = direct.call("POST", path, bad)
                assert status != 500, (where, instead, answer)
        direct.watchers.close()

    asyncio.run(play())


@pytest.mark.parametrize("storage", sorted(BY_STORAGE))
@settings(SETTINGS, max_examples=12)
@given(data=st.data())
def test_damaged_objects_are_rejected_or_repaired(storage: str, data: st.DataObject) -> None:
    """A valid object with one part replaced: created, put, patched, applied, and read in every form."""
    resource = BY_STORAGE[storage]
    name = OTHER_NAMES.get(storage, "a")
    good = {"metadata": {"name": name, "labels": {"app": "a"}}, **copy.deepcopy(SEEDS[storage])}
    bad = copy.deepcopy(good)
    where = data.draw(st.sampled_from(places(bad)))
    holder: Any = bad
    for key in where[:-1]:
        holder = holder[key]
    holder[where[-1]] = data.draw(VALUES)
    path = collection_path(resource)

    async def play() -> None:
        direct = Direct()
        assert direct.call("POST", path, good)[0] == 201
        attempts: list[tuple[str, str, Any, str]] = [
            ("PUT", f"{path}/{name}", bad, "application/json"),
            ("PATCH", f"{path}/{name}", bad, "application/merge-patch+json"),
            ("PATCH", f"{path}/{name}", bad, "application/strategic-merge-patch+json"),
            ("PATCH", f"{path}/{name}?fieldManager=one&force=1", good, "application/apply-patch+yaml"),
            ("PATCH", f"{path}/{name}?fieldManager=two", bad, "application/apply-patch+yaml"),
            ("PATCH", f"{path}/{name}?fieldManager=one", {"metadata": {"name": name}}, "application/apply-patch+yaml"),
            ("DELETE", f"{path}/{name}?gracePeriodSeconds=0", None, "application/json"),
            ("POST", path, bad, "application/json"),
        ]
        attempts += [("PUT", f"{path}/{name}/{sub}", bad, "application/json") for sub in resource.subresources]
        for method, target, body, media in attempts:
            for form in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
                direct.send("GET", path, accept=form)
            wire = direct.send(method, target, copy.deepcopy(body), media)
            assert wire.response is not None
            assert wire.response.status != 500, (method, target, body, wire.response.body)
        for form in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
            wire = direct.send("GET", path, accept=form)
            assert wire.response is not None
            assert wire.response.status == 200
        direct.watchers.close()

    asyncio.run(play())


@SETTINGS
@given(st.text(max_size=40), st.binary(max_size=60), st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]))
def test_no_path_or_body_is_an_internal_error(path: str, body: bytes, method: str) -> None:
    """Arbitrary paths and bodies."""

    async def play() -> None:
        direct = Direct()
        for target in (
            f"/{path}",
            f"/api/v1/{path}",
            f"/apis/apps/v1/{path}",
            f"/api/v1/namespaces/default/pods?{path}",
        ):
            for media in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
                wire = direct.send(method, target, b"k8s\x00" + body if "proto" in media else body, media)
                assert wire.response is not None
                assert wire.response.status != 500, (target, body)
        direct.watchers.close()

    asyncio.run(play())
