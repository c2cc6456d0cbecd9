"""Objects in files: their contents, and the errors of invalid files."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow.api.files import Manifest, ObjectsError, decode, read
from kubestow.api.pod import Pod

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\n"
JSON_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}


def read_text(folder: Path, text: str) -> list[Manifest]:
    path = folder / "all.yaml"
    path.write_text(text)
    return read([str(path)])


def described(folder: Path, manifests: list[Manifest]) -> list[str]:
    return [str(manifest).removeprefix(f"{folder}/all.yaml: ") for manifest in manifests]


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ObjectsError) as raised:
        read_text(folder, text)
    return [line.removeprefix(f"{folder}/all.yaml: ") for line in raised.value.problems]


def test_documents_of_a_file_are_in_order(tmp_path: Path) -> None:
    """Empty documents and comments between separators are ignored."""
    found = read_text(
        tmp_path, f"# first\n---\n{POD}---\n# nothing\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: node}}\n"
    )
    assert described(tmp_path, found) == ["line 3: Pod shop/a", "line 9: Node node"]


def test_a_separator_inside_text_is_ignored(tmp_path: Path) -> None:
    """Only a line that starts with three dashes ends a document."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    ---\n    more\n  dashes: ----\n"
    (found,) = read_text(tmp_path, text)
    assert msgspec.json.decode(found.data)["data"] == {"text": "---\nmore\n", "dashes": "----"}


def test_items_of_a_list_are_objects(tmp_path: Path) -> None:
    """As in the output of `kubectl get -o yaml`: items before the kind; each is named by its line."""
    deployment = "- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web}\n"
    text = "apiVersion: v1\nitems:\n" + deployment + "- " + POD.replace("\n", "\n  ")
    found = read_text(tmp_path, text + "\nkind: List\nmetadata: {resourceVersion: ''}\n")
    assert described(tmp_path, found) == ["line 3: Deployment web", "line 6: Pod shop/a"]


def test_items_of_a_json_list_are_named_by_their_index(tmp_path: Path) -> None:
    """As in the output of `kubectl get -o json`; the JSON of each is unchanged."""
    found = read_text(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [JSON_POD, JSON_POD]}))
    assert described(tmp_path, found) == ["items[0]: Pod shop/a", "items[1]: Pod shop/a"]
    assert msgspec.json.decode(found[1].data) == JSON_POD


def test_items_of_a_typed_list_have_its_kind(tmp_path: Path) -> None:
    """`kubectl get --raw /api/v1/pods` writes a PodList, whose items have no kind."""
    (found,) = read_text(
        tmp_path, json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]})
    )
    assert (found.api_version, found.kind, found.name) == ("v1", "Pod", "a")
    assert isinstance(decode([found]).objects[0], Pod)


def test_a_file_may_have_several_json_documents(tmp_path: Path) -> None:
    """One per line, or with separators between them."""
    one = json.dumps(JSON_POD)
    assert described(tmp_path, read_text(tmp_path, f"{one}\n{one}\n---\n{one}\n")) == [
        f"document {number}: Pod shop/a" for number in (1, 2, 3)
    ]


def test_yaml_may_begin_with_a_brace(tmp_path: Path) -> None:
    """Keys without quotes are not JSON, but kubectl accepts them."""
    text = "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n"
    assert described(tmp_path, read_text(tmp_path, text)) == ["line 1: Pod a", "line 3: Node b"]


def test_an_object_with_a_field_named_items_is_not_a_list(tmp_path: Path) -> None:
    """A custom object may have a field of that name."""
    (found,) = read_text(
        tmp_path, "apiVersion: x/v1\nkind: Menu\nmetadata: {name: a}\nitems: [{name: tea}, {name: cake}]\n"
    )
    assert msgspec.json.decode(found.data)["items"] == [{"name": "tea"}, {"name": "cake"}]


def test_a_folder_is_read_by_file_name(tmp_path: Path) -> None:
    """Other files, and folders inside, are ignored."""
    for name in ("b.yaml", "a.yml", "notes.txt"):
        (tmp_path / name).write_text(POD.replace("name: a", f"name: {name[0]}"))
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}')
    (tmp_path / "inner.yaml").mkdir()
    assert [one.name for one in read([str(tmp_path)])] == ["a", "b", "c"]


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """It is not silently ignored."""
    with pytest.raises(ObjectsError, match=r"has no files that end with \.yaml, \.yml, \.json"):
        read([str(tmp_path)])


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-f -`, as with kubectl; a byte order mark is ignored."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + POD.encode())))
    (found,) = read(["-"])
    assert str(found) == "standard input: line 1: Pod shop/a"


def test_an_object_may_have_a_generated_name(tmp_path: Path) -> None:
    """The object has generateName instead of name."""
    (found,) = read_text(tmp_path, "apiVersion: v1\nkind: Pod\nmetadata: {generateName: run-}\n")
    assert (found.name, found.generate_name) == ("", "run-")
    assert described(tmp_path, [found]) == ["line 1: Pod run-..."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no objects"),
        ('{"apiVersion": "v1", "kind": "List", "items": []}', "has no objects"),
        ('{"apiVersion": "v1", "kind": "List", "items": null}', "has no objects"),
        ("apiVersion: v1\nkind: PodList\nmetadata: {}\nitems:\n", "has no objects"),
        (f"{POD}---\na: b: c\n", "not valid YAML: line 5, column 5: mapping values are not allowed in this context"),
        (f"{POD}kind: Pod\n", "line 1: kind: is given more than once"),
        (
            "kind: List\nitems:\n- {a: 1}\n- {a: {b: 1, b: 2}}\n",
            "line 1: items[1].a.b: is given more than once",
        ),
        ("- 1\n", "line 1: is not a Kubernetes object: Expected `object`, got `array`"),
        ("metadata: {name: a}\n", "line 1: needs apiVersion and kind, such as v1 and Pod"),
        ("apiVersion: v1\nkind: Pod\n", "line 1: Pod needs metadata.name"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: 1}\n",
            "line 1: is not a Kubernetes object: Expected `str | null`, got `int` - at `$.metadata.name`",
        ),
        ('{"a": 1,\n "b": }', "not valid JSON: line 2, column 7: Expecting value"),
        ('{"kind": "Pod", "spec": {"a": 1, "b": 2, "a": 3}}', "a: is given more than once in one object"),
        ("{", "not valid JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
        ('{"a":' * 100_000, "not valid JSON: nested too deeply"),
        ('{"items": [1], "kind": "PodList"}', "items[0]: is not a Kubernetes object: Expected `object`, got `int`"),
    ],
)
def test_problems_name_their_position(tmp_path: Path, text: str, message: str) -> None:
    """The message has the line or the document, and the field."""
    assert problems(tmp_path, text) == [message]


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    """Missing files and binary files are both reported."""
    binary = tmp_path / "image.yaml"
    binary.write_bytes(b"a: \xff\xfe")
    with pytest.raises(ObjectsError) as raised:
        read([str(tmp_path / "none.yaml"), str(binary)])
    assert raised.value.problems == [
        f"{tmp_path}/none.yaml: cannot be read: No such file or directory",
        f"{binary}: is not UTF-8 text: invalid start byte at byte 3",
    ]


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    """Users need not fix problems one by one."""
    assert len(problems(tmp_path, "a: 1\n---\nb: 2\n")) == 2


def test_unknown_kinds_are_counted(tmp_path: Path) -> None:
    """A dump of a complete cluster has many kinds; the scheduler reads few."""
    secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
    found = decode(read_text(tmp_path, POD + secret + secret))
    assert [type(obj) for obj in found.objects] == [Pod]
    assert found.skipped == {"Secret (v1)": 2}


def test_namespace_and_uid_are_filled_in(tmp_path: Path) -> None:
    """Manifests have neither; an API server sets both."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n"
    pod, node = decode(read_text(tmp_path, text)).objects
    assert (pod.metadata.namespace, pod.metadata.uid) == ("default", "Pod/default/a")
    assert (node.metadata.namespace, node.metadata.uid) == ("", "Node//b")


def test_a_field_of_the_wrong_type_is_named(tmp_path: Path) -> None:
    """The message has the file, the line and the object."""
    text = POD + "spec: {priority: high}\n"
    with pytest.raises(ObjectsError) as raised:
        decode(read_text(tmp_path, text))
    message = "not a valid Pod: Expected `int | null`, got `str` - at `$.spec.priority`"
    assert raised.value.problems == [f"{tmp_path}/all.yaml: line 1: Pod shop/a: {message}"]


def test_yaml_and_json_are_equivalent(tmp_path: Path) -> None:
    """A list in any notation has the same objects."""
    items: list[Any] = [JSON_POD, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"x": None}}]
    text = "kind: List\napiVersion: v1\nitems: " + json.dumps(items)
    as_yaml = read_text(tmp_path, text)
    as_json = read_text(tmp_path, json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    assert [msgspec.json.decode(one.data) for one in as_yaml] == [msgspec.json.decode(one.data) for one in as_json]


def test_only_the_first_problems_are_listed(tmp_path: Path) -> None:
    """The message has the first twenty problems and the number of the others."""
    with pytest.raises(ObjectsError) as raised:
        read_text(tmp_path, "a: 1\n---\n" * 1000)
    assert len(raised.value.problems) == 1000
    assert str(raised.value).splitlines()[19:] == [raised.value.problems[19], "... and 980 more"]


def test_aliases_and_depth_are_limited(tmp_path: Path) -> None:
    """A small file cannot expand to a large one, nor crash the program."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
    )
    assert problems(tmp_path, bomb) == ["line 5: the aliases up to here expand to more than 100000 values"]
    assert problems(tmp_path, f"a: {'[' * 300}") == ["line 1: nested more than 200 levels deep"]
