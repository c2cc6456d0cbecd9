"""Manifests of `kubestow up`: what is found in files, and what is said of those that cannot be used."""

import io
from pathlib import Path

import pytest

from kubestow.cli.up_manifests import Manifest, ManifestError, read

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\n"


def read_text(tmp_path: Path, text: str) -> list[Manifest]:
    path = tmp_path / "all.yaml"
    path.write_text(text)
    return read([str(path)])


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ManifestError) as raised:
        read_text(tmp_path, text)
    return [line.removeprefix(f"{tmp_path}/all.yaml: ") for line in str(raised.value).splitlines()]


def test_documents_of_a_file_come_in_order(tmp_path: Path) -> None:
    """Empty documents and comments between separators are nothing."""
    found = read_text(
        tmp_path, f"# first\n---\n{POD}---\n# nothing\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: node}}\n"
    )
    assert [str(one).removeprefix(f"{tmp_path}/all.yaml: ") for one in found] == [
        "document 1: Pod shop/a",
        "document 2: Node node",
    ]
    assert [one.path for one in found] == ["/api/v1/namespaces/shop/pods", "/api/v1/nodes"]


def test_a_separator_inside_text_separates_nothing(tmp_path: Path) -> None:
    """Only a line that begins with three dashes ends a document."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    ---\n    more\n  dashes: ----\n"
    (found,) = read_text(tmp_path, text)
    assert found.body["data"] == {"text": "---\nmore\n", "dashes": "----"}


def test_items_of_a_list_are_objects(tmp_path: Path) -> None:
    """As `kubectl get -o yaml` writes them; the namespace is `default` unless given."""
    text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}\n"
    (found,) = read_text(tmp_path, text)
    assert str(found).endswith("all.yaml: document 1: items[0]: Deployment default/web")
    assert found.path == "/apis/apps/v1/namespaces/default/deployments"


def test_a_folder_is_its_manifests_by_name(tmp_path: Path) -> None:
    """Other files, and folders inside, are left alone."""
    for name in ("b.yaml", "a.yml", "c.json", "notes.txt"):
        (tmp_path / name).write_text(POD.replace("name: a", f"name: {name[0]}") if name != "c.json" else "[]")
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}')
    (tmp_path / "inner.yaml").mkdir()
    assert [one.name for one in read([str(tmp_path)])] == ["a", "b", "c"]


def test_a_custom_kind_is_known_once_it_is_defined(tmp_path: Path) -> None:
    """Later documents may use it, with its scope; a definition that makes no sense defines nothing."""
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: SCOPE
  names: {plural: things, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
    thing = "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"
    file = tmp_path / "a.yaml"
    file.write_text(definition.replace("SCOPE", "Cluster") + thing)
    assert [one.path for one in read([str(file)])][1] == "/apis/example.com/v1/things"
    file.write_text(definition.replace("SCOPE", "Nowhere") + thing)
    with pytest.raises(ManifestError, match=r"no kind Thing in example\.com/v1 is served here"):
        read([str(file)])


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    """Rather than silently nothing."""
    with pytest.raises(ManifestError, match=r"has no files that end with \.yaml, \.yml, \.json"):
        read([str(tmp_path)])


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-f -`, as with kubectl."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    (found,) = read(["-"])
    assert str(found) == "standard input: document 1: Pod shop/a"


def test_a_name_may_be_left_to_the_server(tmp_path: Path) -> None:
    """With generateName."""
    (found,) = read_text(tmp_path, "apiVersion: v1\nkind: Pod\nmetadata: {generateName: run-}\n")
    assert found.name == ""
    assert str(found).endswith("Pod default/run-...")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no objects"),
        (f"{POD}---\na: b: c\n", "document 2: not valid YAML: line 5, column 5: mapping values are not allowed here"),
        (f"{POD}kind: Pod\n", "document 1: kind: is given more than once"),
        ("- 1\n", "document 1: is not an object with apiVersion, kind and metadata"),
        ("metadata: {name: a}\n", "document 1: needs apiVersion and kind, such as v1 and Pod"),
        ("apiVersion: v1\nkind: Pod\n", "document 1: Pod needs metadata with a name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", "document 1: Pod needs metadata.name, as text"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 1}\n", "document 1: Pod needs metadata.name, as text"),
        (
            "apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n",
            "document 1: no kind Deployment in v1 is served here; there is one in apps/v1",
        ),
        (
            "apiVersion: x/v1\nkind: Gadget\nmetadata: {name: a}\n",
            "document 1: no kind Gadget in x/v1 is served here",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """Document and, where there is one, line or object."""
    assert problems(tmp_path, text) == [said]


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """So that nobody has to start again and again."""
    assert len(problems(tmp_path, "a: 1\n---\nb: 2\n")) == 2
