"""Small inputs that would become large, deep or slow are rejected at once, by every reader."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.files import ObjectsError
from kubestow.simulator.recording.files import LARGEST_MEMBER, read
from kubestow.simulator.scenario import reading
from support.apiserver.direct import Direct
from support.fuzzing.running import attempt
from support.fuzzing.targets import TARGETS

HEAD = b"apiVersion: v1\nkind: Config\nmetadata: {name: bomb}\n"


def _doubling(first: str, next_one: str) -> bytes:
    """Return ten values, each made of ten of the previous one."""
    lines = [f"a: &a {first}"]
    for before, name in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{name}: &{name} {next_one.replace('.', ', '.join([f'*{before}'] * 10))}")
    return HEAD + "\n".join(lines).encode()


BOMBS: dict[str, bytes] = {
    "aliases of aliases": _doubling("[x, x, x]", "[.]"),
    "merge keys of merge keys": _doubling("{k: v}", "{<<: [.]}"),
    "aliases of a long text": HEAD + b"a: &a " + b"x" * 1_000_000 + b"\nb: [" + b"*a, " * 50_000 + b"]",
    "lists in lists": HEAD + b"a: " + b"[" * 200_000,
    "dashes": b"- " * 200_000 + b"a",
    "mappings in mappings": HEAD + b"a: " + b"{a: " * 200_000,
    "JSON in JSON": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "JSON lists in JSON lists": b"[" * 200_000 + b"]" * 200_000,
    "a number of many digits": b'{"apiVersion":"v1","kind":"Pod","spec":{"priority":' + b"9" * 100_000 + b"}}",
    "a text of many numbers": HEAD + b"a: " + b"9" * 100_000 + b"\n",
    "a pattern that runs wild": json.dumps({"spec": {"matches": "(a+)+$" * 1000}, "a": "a" * 10_000}).encode(),
}


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_survives_every_bomb(target: str) -> None:
    """Within seconds, and with documented errors only."""
    found = {name: attempt(target, bomb) for name, bomb in BOMBS.items()}
    assert {name: find.trace for name, find in found.items() if find is not None} == {}


PODS = "/api/v1/namespaces/default/pods"
YAML = [name for name, bomb in BOMBS.items() if bomb[:1] not in (b"{", b"[") and "numbers" not in name]


@pytest.mark.parametrize("name", YAML)
@pytest.mark.parametrize(
    ("method", "path", "media"),
    [
        ("POST", PODS, "application/yaml"),
        ("PATCH", f"{PODS}/a?fieldManager=f&fieldValidation=Strict", "application/apply-patch+yaml"),
    ],
)
def test_the_api_server_rejects_exponential_yaml(method: str, path: str, media: str, name: str) -> None:
    """With the line at which the limit was exceeded."""

    async def main() -> tuple[int, Any]:
        status, answer = Direct().call(method, path, BOMBS[name], media)
        return status, answer

    status, answer = asyncio.run(main())
    assert status == 400
    assert "the body is not valid YAML: line " in answer["message"]


def test_a_recording_that_unpacks_to_too_much_is_rejected(tmp_path: Path) -> None:
    """A member is unpacked only up to the limit."""
    file = tmp_path / "bomb.gz"
    pack = gzip.compress(b'{"kubestow":"recording","version":1}\n', mtime=0)
    file.write_bytes(pack + gzip.compress(b"\n" * (LARGEST_MEMBER + 1), mtime=0))
    assert file.stat().st_size < LARGEST_MEMBER // 500
    with pytest.raises(ObjectsError, match="a member unpacks to more than 256 MiB"):
        read(file)


def test_scenarios_that_include_each_other_are_rejected(tmp_path: Path) -> None:
    """Files that include each other are rejected."""
    spec = {"cluster": {"customConfig": "circle.yaml"}, "appList": [{"name": "a", "path": "circle.yaml"}]}
    tree = {"apiVersion": "simon/v1alpha1", "kind": "Config", "spec": spec}
    file = tmp_path / "circle.yaml"
    file.write_text(json.dumps(tree))
    with pytest.raises(ObjectsError, match=r"circle\.yaml: includes itself"):
        reading.read([str(file)])
