"""`kubestow explain` without a pod: all pending pods by owner and cause."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cli.explain_files import Files, node, pod, refused, run_explain


def waiting(name: str, owner: str = "", namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    """Return a pending pod, of a Deployment if `owner` is given."""
    made = pod(name, spec.pop("cpu", "1"), namespace, schedulerName="default-scheduler", **spec)
    made["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": name}
    if owner:
        reference = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"{owner}-5d",
            "uid": owner,
            "controller": True,
        }
        made["metadata"] |= {"ownerReferences": [reference], "labels": {"app": owner, "pod-template-hash": "5d"}}
    return made


@pytest.fixture
def files(tmp_path: Path) -> Files:
    web = [waiting(f"web-{i}", "web", cpu="9") for i in range(3)]
    api = [waiting(f"api-{i}", "api", nodeSelector={"disk": "ssdd"}) for i in range(2)]
    disk = node("disk")
    disk["metadata"]["labels"]["disk"] = "ssd"
    return Files(tmp_path, node("big", "8"), disk, *web, *api, waiting("lone", namespace="tools", cpu="16"))


def test_pending_pods_are_shown_by_owner_with_cause_and_change(files: Files) -> None:
    lines = files.explain().output.splitlines()
    assert lines[0].startswith("6 pods are pending of 3 owners, the longest for ")
    start = next(number for number, line in enumerate(lines) if line.endswith("Deployment shop/web"))
    assert lines[start].split()[0] == "3"
    assert [line.strip() for line in lines[start + 1 : start + 4]] == [
        "2 Insufficient cpu",
        "-> request of cpu lowered from 9 to 8 (helps 1 of 3)",
        f"2  {lines[start + 3].split()[1]:>6}  Deployment shop/api",
    ]
    assert "no node has disk=ssdd; 1 node has ssd: did you mean that?" in files.explain().output


def test_the_overview_fits_a_terminal(tmp_path: Path) -> None:
    """It has at most 24 lines of 80 columns; -o wide has all groups."""
    many = [
        waiting(f"app{i}-0", f"app{i}", nodeSelector={"topology.kubernetes.io/zones": f"zone-{i}"}) for i in range(30)
    ]
    files = Files(tmp_path, node("a"), *many)
    lines = files.explain().output.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith("groups; see -o wide")
    assert files.explain("-o", "wide").output.count("Deployment shop/app") == 30


@pytest.mark.parametrize(
    ("arguments", "owners"),
    [
        (("-n", "tools"), ["Pod tools/lone"]),
        (("-l", "app=api"), ["Deployment shop/api"]),
        (("-A", "-l", "app in (api, web)"), ["Deployment shop/web", "Deployment shop/api"]),
        (("deployment/web",), ["Deployment shop/web"]),
        (("deploy/web", "-n", "shop"), ["Deployment shop/web"]),
        (("replicaset/api-5d",), ["Deployment shop/api"]),
    ],
)
def test_pods_are_selected_by_owner_namespace_and_labels(
    files: Files, arguments: tuple[str, ...], owners: list[str]
) -> None:
    found = json.loads(files.explain(*arguments, "-o", "json").output)
    assert [group["owner"] for group in found["groups"]] == owners


def test_json_and_yaml_have_the_same_fields(files: Files) -> None:
    found = json.loads(files.explain("-n", "tools", "-o", "json").output)
    other = yaml.safe_load(files.explain("-n", "tools", "-o", "yaml").output)
    del found["time"], other["time"]
    assert found == other
    assert found["groups"][0]["remedy"]["change"] == "request of cpu lowered from 16 to 8"
    assert (found["version"], found["pending"]) == (1, 1)


def test_one_more_node(files: Files) -> None:
    output = files.explain("-n", "tools", "--what-if-node", "all").output
    assert output.endswith("\n\nOne more node like any other would let in none of them.\n")
    output = files.explain("deployment/api", "--what-if-node", "big").output
    assert output.endswith("One more node like big would let in none of them.\n")


def test_nothing_is_pending(tmp_path: Path) -> None:
    assert Files(tmp_path, node("a")).explain().output == "No pod is pending.\n"


def test_an_owner_without_pending_pods_is_an_error(files: Files) -> None:
    for arguments, said in (
        (("deployment/wbe",), "there is no deployment wbe; did you mean web?"),
        (("deployment/none",), "there is no deployment none; existing: api, web"),
        (("deployment/web", "-n", "none"), "there is no deployment web in namespace none"),
        (("-n", "shpo"), "there is no namespace shpo; did you mean shop?"),
        (("shop/web",), "there is no pod shop/web; did you mean shop/web-0 or shop/web-1 or shop/web-2?"),
    ):
        assert refused(*arguments, "--cluster", files.cluster) == [f"Error: {said}"]


def test_a_misspelt_scheduler_is_named(tmp_path: Path) -> None:
    """On the screen of the pod and in the overview, with the change that makes it fit."""
    files = Files(tmp_path, node("a"), pod("web", schedulerName="default-schedular"))
    said = "no profile has schedulerName default-schedular; the configuration has default-scheduler; did you mean"
    for output in (files.explain("default/web").output, files.explain("-A").output):
        text = " ".join(output.split())
        assert f"{said} default-scheduler?" in text
        assert "schedulerName changed to default-scheduler" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--node", "a"), "--node applies to one pod: name it"),
        (("shop/web-0", "-A"), "-A applies to pending pods: name no pod"),
        (("-A", "-n", "shop"), "give --namespace or -A, not both"),
        (("web-0", "--what-if-node", "a"), "--what-if-node applies to pending pods: name no pod"),
    ],
)
def test_options_that_do_not_apply_are_refused(arguments: tuple[str, ...], message: str) -> None:
    done = run_explain(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_an_invalid_selector_is_an_error(files: Files) -> None:
    done = files.explain("-l", "app in")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: --selector: ")
