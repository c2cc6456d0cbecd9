"""The dashboard and the alerts in deploy/monitoring: what they ask for is served, and Prometheus understands it."""

import json
import re
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.instruments import Histogram
from support.repository import ROOT

MONITORING = ROOT / "deploy/monitoring"
BOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"][0]["rules"]
SCRAPED = yaml.safe_load((MONITORING / "scrape.yaml").read_text())
SHOWN = {
    f"{panel['title']}: {target['refId']}": target["expr"] for panel in BOARD["panels"] for target in panel["targets"]
}
EXPRESSIONS = SHOWN | {rule["alert"]: rule["expr"] for rule in RULES}
FROM_PROMETHEUS = {"job", "instance"}
WORDS = {"by", "sum", "max", "rate", "increase", "deriv", "absent", "and", "histogram_quantile"}
needs_promtool = pytest.mark.skipif(which("promtool") is None, reason="no promtool; Debian has it in prometheus")


def _served() -> dict[str, set[str]]:
    """The labels of everything that is served, by name."""
    found = {}
    for family in Metrics().registry.families():
        ends = ("_bucket", "_sum", "_count") if isinstance(family, Histogram) else ("",)
        for end in ends:
            found[family.name + end] = {*family.labels, *FROM_PROMETHEUS, *(["le"] if end == "_bucket" else [])}
    return found


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_what_is_asked_for_is_served(what: str) -> None:
    """Every metric there is, with every label that is chosen or grouped by."""
    expression, served = EXPRESSIONS[what], _served()
    bare = re.sub(r'"[^"]*"', '""', expression.replace("$quantile", "0.9"))
    words = set(re.findall(r"[a-z_]{2,}", re.sub(r"\[[^\]]*\]", "", bare))) - WORDS
    metrics = words & served.keys()
    assert metrics, expression
    labels = set.union(*(served[metric] for metric in metrics))
    assert words - metrics <= labels


def test_instances_are_found() -> None:
    """By the label and the port that the manifests give them, under the job that the alerts ask for."""
    (job,) = SCRAPED["scrape_configs"]
    assert all(f'job="{job["job_name"]}"' in rule["expr"] for rule in RULES)
    deployment = next(
        obj
        for obj in yaml.safe_load_all((ROOT / "deploy/kubernetes/scheduler.yaml").read_text())
        if obj["kind"] == "Deployment"
    )
    pod = deployment["spec"]["template"]
    (port,) = pod["spec"]["containers"][0]["ports"]
    assert job["relabel_configs"][0]["regex"] == f"{pod['metadata']['labels']['app.kubernetes.io/name']};{port['name']}"
    assert job["kubernetes_sd_configs"][0]["namespaces"]["names"] == [deployment["metadata"]["namespace"]]


@needs_promtool
def test_prometheus_understands_how_they_are_found(tmp_path: Path) -> None:
    """But for the search for pods, which Debian's Prometheus is built without."""
    (job,) = SCRAPED["scrape_configs"]
    known = {name: value for name, value in job.items() if name != "kubernetes_sd_configs"}
    (tmp_path / "scrape.yaml").write_text(yaml.safe_dump({"scrape_configs": [known]}))
    command = ["promtool", "check", "config", "--syntax-only", "scrape.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_are_distinguishable() -> None:
    """Each has a title and a place of its own."""
    assert len({panel["title"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]}) == len(BOARD["panels"])


@needs_promtool
def test_alerts_go_off_when_they_should() -> None:
    """promtool checks the rules and plays what rules_test.yaml says."""
    for command in (["check", "rules", "rules.yaml"], ["test", "rules", "rules_test.yaml"]):
        done = subprocess.run(["promtool", *command], cwd=MONITORING, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_understands_the_dashboard(tmp_path: Path) -> None:
    """Every expression, with values for Grafana's variables."""
    written = [expr.replace("$__rate_interval", "5m").replace("$quantile", "0.9") for expr in SHOWN.values()]
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(written)]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    command = ["promtool", "check", "rules", "panels.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
