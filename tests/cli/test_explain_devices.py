"""`kubestow explain -f` for pods that need devices, which are claimed before there is a pod."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.explain_files import Files, node, pod

_API = "resource.k8s.io/v1"
_NAMED = {"name": "gpu"}
_SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
_TEMPLATE = {"apiVersion": _API, "kind": "ResourceClaimTemplate", "metadata": _NAMED, "spec": {"spec": _SPEC}}


@pytest.fixture
def objects() -> list[dict[str, Any]]:
    """A node with one GPU."""
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "gpu.example.com", "nodeName": "a", "pool": pool, "devices": [_NAMED]}
    gpus = {"apiVersion": _API, "kind": "ResourceSlice", "metadata": _NAMED, "spec": devices}
    return [node("a"), gpus, {"apiVersion": _API, "kind": "DeviceClass", "metadata": _NAMED}]


def _claiming(name: str) -> dict[str, Any]:
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])


def _list(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def test_a_resource_claim_beside_a_pod_has_the_defaults_of_one(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    """A request that says nothing else asks for one device."""
    claim = {"apiVersion": _API, "kind": "ResourceClaim", "metadata": _NAMED, "spec": _SPEC}
    claiming = pod("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    done = Files(tmp_path, *objects).explain_pod(_list(claim, claiming))
    assert done.output.startswith("Pod default/web would go to a.")


@pytest.mark.parametrize("beside", [False, True])
def test_claims_are_made_from_templates(objects: list[dict[str, Any]], tmp_path: Path, beside: bool) -> None:
    """As they will be by the time the pod is scheduled; each pod has its own, so the second gets no GPU."""
    pods = _claiming("web"), _claiming("next")
    files = Files(tmp_path, *objects) if beside else Files(tmp_path, *objects, _TEMPLATE)
    decision = json.loads(files.explain_pod(_list(*pods, _TEMPLATE) if beside else _list(*pods), "-o", "json").output)
    first, second = decision["items"]
    assert (first["outcome"], first["chosen"]) == ("scheduled", "a")
    assert second["message"].startswith("0/1 nodes are available: 1 cannot allocate all claims.")


def test_a_template_that_is_missing_is_named(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    """A template of another namespace is none."""
    elsewhere = {**_TEMPLATE, "metadata": {**_NAMED, "namespace": "shop"}}
    done = Files(tmp_path, *objects, elsewhere).explain_pod(_claiming("web"))
    assert 'pod "default/web": ResourceClaim not created yet.' in done.output
    assert done.output.endswith("Note: there is no ResourceClaimTemplate default/gpu here.\n")


@pytest.mark.parametrize("has_template", [False, True])
def test_the_template_of_a_missing_claim_is_shown_for_an_existing_pod(
    objects: list[dict[str, Any]], tmp_path: Path, has_template: bool
) -> None:
    """A template that does not exist is what stands in the way; once the claim exists, it does not matter."""
    where = "it comes from resourceclaimtemplate gpu"
    if not has_template:
        where = "there is no resourceclaimtemplate gpu in namespace default: create it"
    for claims in ([], [{"name": "gpu", "resourceClaimName": "web-gpu"}]):
        waiting = {**_claiming("web"), "status": {"resourceClaimStatuses": claims}}
        done = Files(tmp_path, *objects, waiting, *([_TEMPLATE] if has_template else [])).explain("default/web")
        assert done.output.startswith("Pod default/web is held back by DynamicResources.\n")
        assert (where in " ".join(done.output.split())) is not bool(claims)
