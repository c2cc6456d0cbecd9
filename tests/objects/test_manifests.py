"""Objects in files: what is found, and what is said of files that cannot be used."""

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


def told(folder: Path, manifests: list[Manifest]) -> list[str]:
    return [str(manifest).removeprefix(f"{folder}/all.yaml: ") for manifest in manifests]


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ObjectsError) as raised:
        read_text(folder, text)
    return [line.removeprefix(f"{folder}/all.yaml: ") for line in raised.value.problems]


def test_documents_of_a_file_come_in_order(tmp_path: Path) -> None:
    """Empty documents and comments between separators are nothing."""
    found = read_text(
        tmp_path, f"# first\n---\n{POD}---\n# nothing\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: node}}\n"
    )
    assert told(tmp_path, found) == ["line 3: Pod shop/a", "line 9: Node node"]


def test_a_separator_inside_text_separates_nothing(tmp_path: Path) -> None:
    """Only a line that begins with three dashes ends a document."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    ---\n    more\n  dashes: ----\n"
    (found,) = read_text(tmp_path, text)
    assert msgspec.json.decode(found.data)["data"] == {"text": "---\nmore\n", "dashes": "----"}


def test_items_of_a_list_are_objects(tmp_path: Path) -> None:
    """As `kubectl get -o yaml` writes them: items before the kind, each told by its line."""
    deployment = "- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web}\n"
    text = "apiVersion: v1\nitems:\n" + deployment + "- " + POD.replace("\n", "\n  ")
    found = read_text(tmp_path, text + "\nkind: List\nmetadata: {resourceVersion: ''}\n")
    assert told(tmp_path, found) == ["line 3: Deployment web", "line 6: Pod shop/a"]


def test_items_of_a_json_list_are_told_by_their_index(tmp_path: Path) -> None:
    """As `kubectl get -o json` writes them; the JSON of each is kept as it is."""
    found = read_text(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [JSON_POD, JSON_POD]}))
    assert told(tmp_path, found) == ["items[0]: Pod shop/a", "items[1]: Pod shop/a"]
    assert msgspec.json.decode(found[1].data) == JSON_POD


def test_the_api_servers_own_lists_name_the_kind_once(tmp_path: Path) -> None:
    """`kubectl get --raw /api/v1/pods`: a PodList, whose items do not say that they are pods."""
    (found,) = read_text(
        tmp_path, json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]})
    )
    assert (found.api_version, found.kind, found.name) == ("v1", "Pod", "a")
    assert isinstance(decode([found]).objects[0], Pod)


def test_several_json_documents_make_one_file(tmp_path: Path) -> None:
    """One a line, or with separators between them."""
    one = json.dumps(JSON_POD)
    assert told(tmp_path, read_text(tmp_path, f"{one}\n{one}\n---\n{one}\n")) == [
        f"document {number}: Pod shop/a" for number in (1, 2, 3)
    ]


def test_yaml_may_begin_with_a_brace(tmp_path: Path) -> None:
    """Keys without quotes are not JSON, and kubectl takes them, too."""
    text = "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n"
    assert told(tmp_path, read_text(tmp_path, text)) == ["line 1: Pod a", "line 3: Node b"]


def test_something_with_items_that_is_no_list_stays_whole(tmp_path: Path) -> None:
    """A custom object may have a field of that name."""
    (found,) = read_text(
        tmp_path, "apiVersion: x/v1\nkind: Menu\nmetadata: {name: a}\nitems: [{name: tea}, {name: cake}]\n"
    )
    assert msgspec.json.decode(found.data)["items"] == [{"name": "tea"}, {"name": "cake"}]


def test_a_folder_is_its_files_by_name(tmp_path: Path) -> None:
    """Other files, and folders inside, are left alone."""
    for name in ("b.yaml", "a.yml", "notes.txt"):
        (tmp_path / name).write_text(POD.replace("name: a", f"name: {name[0]}"))
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}')
    (tmp_path / "inner.yaml").mkdir()
    assert [one.name for one in read([str(tmp_path)])] == ["a", "b", "c"]


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    """Rather than silently nothing."""
    with pytest.raises(ObjectsError, match=r"has no files that end with \.yaml, \.yml, \.json"):
        read([str(tmp_path)])


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-f -`, as with kubectl; a byte order mark does no harm."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + POD.encode())))
    (found,) = read(["-"])
    assert str(found) == "standard input: line 1: Pod shop/a"


def test_a_name_may_be_left_to_the_server(tmp_path: Path) -> None:
    """With generateName."""
    (found,) = read_text(tmp_path, "apiVersion: v1\nkind: Pod\nmetadata: {generateName: run-}\n")
    assert (found.name, found.generate_name) == ("", "run-")
    assert told(tmp_path, [found]) == ["line 1: Pod run-..."]


@pytest.mark.parametrize(
    ("text", "said"),
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
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """Line, or document, and the field."""
    assert problems(tmp_path, text) == [said]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Missing ones, and those that are not text; both are told."""
    binary = tmp_path / "image.yaml"
    binary.write_bytes(b"a: \xff\xfe")
    with pytest.raises(ObjectsError) as raised:
        read([str(tmp_path / "none.yaml"), str(binary)])
    assert raised.value.problems == [
        f"{tmp_path}/none.yaml: cannot be read: No such file or directory",
        f"{binary}: is not UTF-8 text: invalid start byte at byte 3",
    ]


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """So that nobody has to start again and again."""
    assert len(problems(tmp_path, "a: 1\n---\nb: 2\n")) == 2


def test_kinds_that_the_model_does_not_have_are_counted(tmp_path: Path) -> None:
    """A dump of a whole cluster has many; the scheduler looks at few."""
    secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
    found = decode(read_text(tmp_path, POD + secret + secret))
    assert [type(obj) for obj in found.objects] == [Pod]
    assert found.skipped == {"Secret (v1)": 2}


def test_what_an_api_server_fills_in_is_filled_in(tmp_path: Path) -> None:
    """A namespace for what needs one, and a uid: manifests have none."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n"
    pod, node = decode(read_text(tmp_path, text)).objects
    assert (pod.metadata.namespace, pod.metadata.uid) == ("default", "Pod/default/a")
    assert (node.metadata.namespace, node.metadata.uid) == ("", "Node//b")


def test_a_field_that_does_not_fit_its_kind_is_named(tmp_path: Path) -> None:
    """With file, line and object."""
    text = POD + "spec: {priority: high}\n"
    with pytest.raises(ObjectsError) as raised:
        decode(read_text(tmp_path, text))
    said = "not a valid Pod: Expected `int | null`, got `str` - at `$.spec.priority`"
    assert raised.value.problems == [f"{tmp_path}/all.yaml: line 1: Pod shop/a: {said}"]


def test_yaml_and_json_mean_the_same(tmp_path: Path) -> None:
    """Whatever way a list is written, the same objects come out."""
    items: list[Any] = [JSON_POD, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"x": None}}]
    text = "kind: List\napiVersion: v1\nitems: " + json.dumps(items)
    as_yaml = read_text(tmp_path, text)
    as_json = read_text(tmp_path, json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    assert [msgspec.json.decode(one.data) for one in as_yaml] == [msgspec.json.decode(one.data) for one in as_json]


def test_a_thousand_problems_are_not_all_shown(tmp_path: Path) -> None:
    """The first twenty are told, and how many there are."""
    with pytest.raises(ObjectsError) as raised:
        read_text(tmp_path, "a: 1\n---\n" * 1000)
    assert len(raised.value.problems) == 1000
    assert str(raised.value).splitlines()[19:] == [raised.value.problems[19], "... and 980 more"]


def test_aliases_and_depth_are_bounded(tmp_path: Path) -> None:
    """A small file cannot become a large one, nor end the program."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
    )
    assert problems(tmp_path, bomb) == ["line 5: the aliases up to here expand to more than 100000 values"]
    assert problems(tmp_path, f"a: {'[' * 300}") == ["line 1: nested more than 200 levels deep"]
