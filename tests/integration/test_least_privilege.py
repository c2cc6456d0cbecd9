"""The ClusterRole in deploy/: the scheduler needs no other right, and no rule is unused.

The embedded API server enforces RBAC and writes an audit log. The scheduler's user has only that role, and does
everything that a scheduler does: binds, preempts, waits for volumes, allocates devices, leads, reviews access.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubestow.cli import main
from support.apiserver.running import Client, Running, run_bare
from support.free_ports import free_port
from support.integration.cluster import PODS, node, pod, priority_class
from support.integration.custom_definitions import DEFINITIONS, QUOTA, QUOTAS, definition
from support.integration.device_manifests import CLAIMS, CLASSES, SLICES, claim, claiming, device_class, device_slice
from support.integration.process import Process, create_hanging_binding, get_page
from support.plugins import platform_plugins
from support.polling import until
from support.repository import ROOT
from support.scenarios.gangs import TREE_GATES

ROLE = ROOT / "deploy/helm/kubestow/files/rules.yaml"
RULES: list[dict[str, Any]] = yaml.safe_load(ROLE.read_text())
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP_REFERENCE = "rbac.authorization.k8s.io"
USER = "kubestow"
GATES = ",".join(f"{gate}=true" for gate in TREE_GATES)
NOT_USED_HERE = {
    "leasecandidates": "only where the API server coordinates the election",
    "bindings": "the older address of a binding, which servers still check",
    "resourceclaims/binding": "asked for by newer API servers when an allocation is written",
    "pods/finalizers": "asked for by API servers that check who owns the claim made for a pod",
}


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Running]:
    """Start a control plane with RBAC and an audit log, and grant the role to the scheduler."""
    tokens, log = tmp_path / "tokens.csv", tmp_path / "audit.jsonl"
    tokens.write_text(f't-scheduler,{USER},1,""\nt-monitor,monitor,2,""\n')
    with run_bare(token_file=tokens, audit_log=log, rbac=True) as running:
        _grant(running.client(), "kubestow", RULES, USER)
        _grant(running.client(), "monitor", [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}], "monitor")
        yield running


def _grant(admin: Client, name: str, rules: list[dict[str, Any]], user: str) -> None:
    admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    reference = {"apiGroup": GROUP_REFERENCE, "kind": "ClusterRole", "name": name}
    subject = {"apiGroup": GROUP_REFERENCE, "kind": "User", "name": user}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    admin.create(f"{RBAC}/clusterrolebindings", body)


def _kubeconfig(plane: Running, path: Path) -> Path:
    content = yaml.safe_load(plane.control_plane.kubeconfig_path.read_text())
    content["users"] = [{"name": content["users"][0]["name"], "user": {"token": "t-scheduler"}}]
    path.write_text(yaml.safe_dump(content))
    return path


def _bound(admin: Client, name: str) -> bool:
    return bool(admin.get(f"{PODS}/{name}")["spec"].get("nodeName"))


def _everything_a_scheduler_does(admin: Client) -> None:
    admin.create("/api/v1/nodes", node("n1", cpu="2"))
    admin.create("/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 1000))
    admin.create(PODS, pod("small", cpu="1500m"))
    until(lambda: _bound(admin, "small"))
    admin.create(PODS, pod("large", cpu="1500m", priorityClassName="high"))
    until(lambda: _bound(admin, "large"))
    admin.create(CLASSES, device_class())
    admin.create(SLICES, device_slice("n1", 1))
    admin.create(CLAIMS, claim("c"))
    admin.create(PODS, claiming("device", "c"))
    until(lambda: _bound(admin, "device"))
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    admin.create("/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups", group)
    admin.create(PODS, pod("member", schedulingGroup={"podGroupName": "g"}))
    until(lambda: _bound(admin, "member"))
    create_hanging_binding(admin)


def _audited(file: Path) -> list[dict[str, Any]]:
    # The text after the last line end is still being written.
    events = [json.loads(line) for line in file.read_text().rpartition("\n")[0].splitlines()]
    return [event for event in events if event["user"]["username"] == USER]


def test_the_role_is_sufficient_and_minimal(audited: Running, tmp_path: Path) -> None:
    """No call is rejected, and every rule is used."""
    admin, port = audited.client(), free_port()
    config = _kubeconfig(audited, tmp_path / "scheduler.kubeconfig")
    flags = [f"--{what}-kubeconfig={config}" for what in ("authentication", "authorization")]
    flags += [f"--secure-port={port}", f"--cert-dir={tmp_path / 'certificates'}", f"--feature-gates={GATES}"]
    scheduler = Process(tmp_path, "scheduler", config, *flags, "--leader-elect-resource-name=kubestow")
    try:
        _everything_a_scheduler_does(admin)
        trusted = tmp_path / "certificates" / "kube-scheduler.crt"
        until(lambda: "Serving securely" in scheduler.output(), scheduler.output)
        assert get_page(port, trusted, "/metrics", "t-monitor")[0] == 200
        until(lambda: _unused(_audited(tmp_path / "audit.jsonl")) <= NOT_USED_HERE.keys(), scheduler.output)
    finally:
        scheduler.close()
    events = _audited(tmp_path / "audit.jsonl")
    refused = {event["requestURI"] for event in events if event["responseStatus"]["code"] == 403}
    assert refused == set()


def test_the_role_for_a_plugin_is_sufficient(audited: Running, tmp_path: Path) -> None:
    """Without it, the log has the missing rule; with it, the plugin watches and writes its objects."""
    admin, plugin = audited.client(), Path(platform_plugins.__file__)
    admin.create(DEFINITIONS, definition("scheduling.x-k8s.io", "ElasticQuota", status=True))
    until(lambda: admin.call("GET", QUOTAS)[0] == 200)
    admin.create(QUOTAS, QUOTA)
    admin.create("/api/v1/nodes", node("n1", cpu="2"))
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text(CONFIGURATION % _kubeconfig(audited, tmp_path / "scheduler.kubeconfig"))
    flags = (f"--config={configuration}", f"--plugin={plugin}", "--secure-port=0")
    scheduler = Process(tmp_path, "scheduler", tmp_path / "scheduler.kubeconfig", *flags)
    try:
        missing = (
            "{apiGroups: ['scheduling.x-k8s.io'], resources: ['elasticquotas'], verbs: ['list', 'watch']}",
            "{apiGroups: ['scheduling.x-k8s.io'], resources: ['elasticquotas/status'], verbs: ['patch']}",
        )
        until(lambda: missing[0] in scheduler.output(), scheduler.output)
        reading = {"apiGroups": ["*"], "resources": ["elasticquotas"], "verbs": ["list", "watch"]}
        _grant(admin, "reader", [reading], USER)
        until(lambda: "Resource is available now" in scheduler.output(), scheduler.output)
        admin.create(PODS, pod("p", cpu="1"))
        until(lambda: missing[1] in scheduler.output(), scheduler.output)
        printed = CliRunner().invoke(main, ["plugin", "rbac", str(plugin)]).output
        _grant(admin, "plugins", yaml.safe_load(printed)["rules"], USER)
        admin.create(PODS, pod("q", cpu="500m"))
        quota = f"{QUOTAS}/quota"
        until(lambda: admin.get(quota).get("status", {}).get("used", {}).get("cpu") == "1500m", scheduler.output)
        until(lambda: admin.get(quota)["metadata"].get("annotations", {}).get("last") == "q", scheduler.output)
    finally:
        scheduler.close()


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s}
profiles:
- plugins: {multiPoint: {enabled: [{name: LateReporter}]}}
"""


def _unused(events: list[dict[str, Any]]) -> set[str]:
    """Return the resources of rules that no request has used so far."""
    used = {_request_of(event) for event in events}
    return {
        resource
        for rule in RULES
        for resource in rule["resources"]
        if not used & {(group, resource, verb) for group in rule["apiGroups"] for verb in rule["verbs"]}
    }


def _request_of(event: dict[str, Any]) -> tuple[str, str, str]:
    about = event["objectRef"]
    name = f"{about['resource']}/{about['subresource']}" if "subresource" in about else about["resource"]
    return about.get("apiGroup", ""), name, event["verb"]
