"""Manifests of `kubestow up`: where each goes in the API, and what is said of those it does not serve."""

from pathlib import Path

import pytest

from kubestow.api.files import ObjectsError
from kubestow.cli.up.manifests import Applicable, read

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\n"


def read_text(tmp_path: Path, text: str) -> list[Applicable]:
    path = tmp_path / "all.yaml"
    path.write_text(text)
    return read([str(path)])


def test_every_object_has_its_path(tmp_path: Path) -> None:
    """The namespace is `default` unless given, and only where the kind has one."""
    text = (
        f"{POD}---\napiVersion: v1\nkind: Node\nmetadata: {{name: node}}\n---\napiVersion: apps/v1\nkind: Deployment\n"
    )
    found = read_text(tmp_path, text + "metadata: {name: web}\n")
    assert [one.path for one in found] == [
        "/api/v1/namespaces/shop/pods",
        "/api/v1/nodes",
        "/apis/apps/v1/namespaces/default/deployments",
    ]
    assert str(found[2].manifest).endswith("all.yaml: line 9: Deployment default/web")


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
    with pytest.raises(ObjectsError, match=r"no kind Thing in example\.com/v1 is served here"):
        read([str(file)])


@pytest.mark.parametrize("depth", [100, 300, 450])
def test_a_definition_that_is_nested_too_deeply_is_left_to_the_server(tmp_path: Path, depth: int) -> None:
    """Which rejects it; its kind is unknown."""
    schema = '{"type":"object","properties":{"a":' * depth + '{"type":"string"}' + "}}" * depth
    names = '"names":{"plural":"things","kind":"Thing"},"group":"example.com","scope":"Cluster"'
    version = '{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}}' % schema  # noqa: UP031 - braces
    kind = '"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"'
    file = tmp_path / "a.json"
    file.write_text(f'{{{kind},"metadata":{{"name":"things.example.com"}},"spec":{{{names},"versions":[{version}]}}}}')
    assert [one.path for one in read([str(file)])] == ["/apis/apiextensions.k8s.io/v1/customresourcedefinitions"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n",
            "line 1: no kind Deployment in v1 is served here; there is one in apps/v1",
        ),
        ("apiVersion: x/v1\nkind: Gadget\nmetadata: {name: a}\n", "line 1: no kind Gadget in x/v1 is served here"),
    ],
)
def test_a_kind_that_is_not_served_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With its place, and the version that is served."""
    with pytest.raises(ObjectsError) as raised:
        read_text(tmp_path, text)
    assert raised.value.problems == [f"{tmp_path}/all.yaml: {said}"]
