"""A legacy Policy by flags: where it comes from, what wins over what, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubestow.cli import main
from support.apiserver.fixtures import shared_plane
from support.apiserver.running import Running

__all__ = ["shared_plane"]
"""Fixtures."""

HEAD = {"apiVersion": "v1", "kind": "Policy"}


def write(path: Path, *predicates: str, **more: Any) -> str:
    path.write_text(json.dumps({**HEAD, "predicates": [{"name": name} for name in predicates], **more}))
    return str(path)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scheduler", *arguments])


def filters(tmp_path: Path, *arguments: str) -> list[str]:
    """The filters of the configuration that these flags come to."""
    (profile,) = written(tmp_path, *arguments)["profiles"]
    return [plugin["name"] for plugin in profile["plugins"]["filter"]["enabled"]]


def written(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    target = tmp_path / "written.yaml"
    done = invoke(*arguments, "--write-config-to", str(target))
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = yaml.safe_load(target.read_text())
    return found


def config_map(text: str, name: str, key: str = "policy.cfg") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: text}}


@pytest.fixture(scope="module", autouse=True)
def _config_maps(shared_plane: Running) -> None:
    client = shared_plane.client()
    client.create("/api/v1/namespaces/kube-system/configmaps", config_map(json.dumps(HEAD), "default-policy"))
    client.create("/api/v1/namespaces/kube-system/configmaps", config_map(json.dumps(HEAD), "no-policy", "other"))
    small = json.dumps(HEAD | {"predicates": [{"name": "HostName"}]})
    client.create("/api/v1/namespaces/default/configmaps", config_map(small, "small-policy"))


def test_a_policy_from_a_file(tmp_path: Path) -> None:
    """It becomes the only profile."""
    file = write(tmp_path / "policy.json", "HostName")
    assert filters(tmp_path, f"--policy-config-file={file}") == ["NodeUnschedulable", "NodeName", "TaintToleration"]


def test_a_policy_wins_over_the_profiles_of_a_configuration(tmp_path: Path) -> None:
    """Whose other fields count."""
    file = write(tmp_path / "policy.json", "HostName")
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 7\n"
        "profiles: [{schedulerName: a}, {schedulerName: b}]\n"
    )
    found = written(tmp_path, f"--config={path}", f"--policy-config-file={file}", "--leader-elect=false")
    assert [profile["schedulerName"] for profile in found["profiles"]] == ["default-scheduler"]
    assert found["parallelism"] == 7
    assert found["leaderElection"]["leaderElect"] is False


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        (["--policy-configmap=default-policy"], 12),
        (["--policy-configmap=default-policy", "--policy-configmap-namespace="], 12),
        (["--policy-configmap=small-policy", "--policy-configmap-namespace=default"], 3),
        (["--policy-configmap=default-policy", "--policy-config-file=FILE"], 12),
        (["--policy-configmap=default-policy", "--policy-config-file=FILE", "--use-legacy-policy-config"], 2),
        (["--policy-config-file=FILE", "--use-legacy-policy-config"], 2),
    ],
)
def test_a_config_map_wins_over_a_file(shared_plane: Running, tmp_path: Path, flags: list[str], count: int) -> None:
    """Unless --use-legacy-policy-config is given; it is in kube-system by default."""
    file = write(tmp_path / "policy.json")
    kubeconfig = shared_plane.control_plane.kubeconfig_path
    given = [flag.replace("FILE", file) for flag in flags]
    assert len(filters(tmp_path, f"--kubeconfig={kubeconfig}", *given)) == count


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--policy-configmap=none"], 'ConfigMap kube-system/none: cannot be read: configmaps "none" not found'),
        (
            ["--policy-configmap=no-policy"],
            "ConfigMap kube-system/no-policy: data[policy.cfg]: is missing; there is other",
        ),
        (["--policy-config-file=/nowhere/p.json"], "/nowhere/p.json: cannot be read: No such file or directory"),
        (["--use-legacy-policy-config"], "--policy-config-file: is required with --use-legacy-policy-config"),
    ],
)
def test_policies_that_are_not_there(shared_plane: Running, flags: list[str], message: str) -> None:
    """The place is named, and what is wrong with it."""
    done = invoke(f"--kubeconfig={shared_plane.control_plane.kubeconfig_path}", *flags)
    assert done.exit_code == 1
    assert message in done.output


def test_every_fault_of_a_policy_is_reported(tmp_path: Path) -> None:
    """With the file and the path of the field."""
    file = write(tmp_path / "policy.json", "Nope", hardPodAffinitySymmetricWeight=101)
    done = invoke(f"--policy-config-file={file}")
    assert done.exit_code == 1
    first, second = done.output.splitlines()
    assert first.startswith(f'Error: {file}: predicates[0]: there is no predicate "Nope"')
    assert second == f"Error: {file}: hardPodAffinitySymmetricWeight: must be from 0 to 100, not 101"
