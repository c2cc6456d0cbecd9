"""The files in deploy/: they load, they agree with each other, they allow what the scheduler does."""

from typing import Any

import pytest
import yaml

from kubestow import config
from kubestow.cli.scheduler.flags import FLAGS
from kubestow.client.resources import COMPOSITE_POD_GROUPS, DEVICE_TAINT_RULES, POD_GROUPS, WATCHED
from support.repository import ROOT

DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "helm/kubestow/files/rules.yaml").read_text())


def test_the_chart_adds_rules_for_plugins() -> None:
    """To the role, in its list of rules."""
    chart = DEPLOY / "helm/kubestow"
    assert yaml.safe_load((chart / "values.yaml").read_text())["extraRules"] == []
    role = (chart / "templates/rbac.yaml").read_text().split("---")[1]
    assert "{{- with .Values.extraRules }}\n{{ toYaml . | indent 2 }}\n{{- end }}\n" in role


def _documents(name: str) -> dict[str, Any]:
    return {obj["kind"]: obj for obj in yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text())}


def _allowed(group: str, resource: str, verb: str) -> bool:
    return any(group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] for rule in RULES)


def test_the_role_is_the_same_everywhere() -> None:
    """The plain manifest has the rules of the chart."""
    assert _documents("rbac.yaml")["ClusterRole"]["rules"] == RULES


@pytest.mark.parametrize(
    "resource", [*WATCHED, DEVICE_TAINT_RULES, POD_GROUPS, COMPOSITE_POD_GROUPS], ids=lambda resource: resource.name
)
def test_everything_watched_may_be_watched(resource: Any) -> None:
    """List and watch."""
    assert _allowed(resource.group, resource.plural, "list")
    assert _allowed(resource.group, resource.plural, "watch")


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("", "pods/binding", "create"),
        ("", "pods/status", "patch"),
        ("", "pods", "delete"),
        ("", "persistentvolumes", "update"),
        ("", "persistentvolumeclaims", "update"),
        ("resource.k8s.io", "resourceclaims", "update"),
        ("resource.k8s.io", "resourceclaims/status", "update"),
        ("scheduling.k8s.io", "podgroups/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
        ("", "events", "create"),
        ("coordination.k8s.io", "leases", "create"),
        ("coordination.k8s.io", "leases", "update"),
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    ],
)
def test_everything_written_may_be_written(group: str, resource: str, verb: str) -> None:
    """Every kind of write the scheduler makes."""
    assert _allowed(group, resource, verb)


def test_the_deployment_elects_a_leader_under_its_own_lease() -> None:
    """Two instances; the configuration is valid; the lease is one the role names."""
    documents = _documents("scheduler.yaml")
    assert documents["Deployment"]["spec"]["replicas"] == 2
    configuration = config.load(documents["ConfigMap"]["data"]["config.yaml"])
    assert configuration.leaderElection.leaderElect
    leases = next(rule["resourceNames"] for rule in RULES if "resourceNames" in rule)
    assert configuration.leaderElection.resourceName in leases
    assert configuration.profiles[0].schedulerName == "kubestow"


@pytest.mark.parametrize("path", ["kubernetes/scheduler.yaml", "helm/kubestow/templates/deployment.yaml"])
def test_only_known_flags_are_used(path: str) -> None:
    """In the plain manifest and in the chart."""
    lines = (DEPLOY / path).read_text().splitlines()
    used = [line.strip().removeprefix("- ") for line in lines if line.strip().startswith(("- --", "- -v"))]
    assert used
    assert {flag.lstrip("-").partition("=")[0] for flag in used} <= FLAGS.keys()


def test_the_chart_loads() -> None:
    """Its values and description are YAML, and every value used in a template has a default."""
    values = yaml.safe_load((DEPLOY / "helm/kubestow/values.yaml").read_text())
    assert yaml.safe_load((DEPLOY / "helm/kubestow/Chart.yaml").read_text())["name"] == "kubestow"
    used = {
        word.removeprefix(".Values.").split(".")[0].rstrip(")}")
        for template in (DEPLOY / "helm/kubestow/templates").glob("*.yaml")
        for word in template.read_text().split()
        if word.startswith(".Values.")
    }
    assert used == values.keys()
