"""An operator written with kopf works against the server."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.apiserver.crontabs import CRONTABS, V1, define
from support.apiserver.running import Running

KOPF = str(Path(sys.executable).parent / "kopf")
OPERATOR = """
import kopf

KIND = ("stable.example.com", "v1", "crontabs")

@kopf.on.create(*KIND)
def made(spec, **_):
    return spec["schedule"]

@kopf.on.field(*KIND, field="spec.replicas")
def scaled(old, new, **_):
    return f"{old} to {new}"

@kopf.on.delete(*KIND)
def gone(**_):
    pass
"""


def test_an_operator_of_kopf(start: Callable[..., Running], tmp_path: Path) -> None:
    """It handles creation, the change of a field, and deletion, for which its finalizer waits."""
    plane = start()
    version: Any = copy.deepcopy(V1)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = anything
    client = define(plane, version)
    script = tmp_path / "operator.py"
    script.write_text(OPERATOR, encoding="utf-8")
    environment = {**os.environ, "KUBECONFIG": str(plane.control_plane.kubeconfig_path)}
    watch = plane.watch(f"{CRONTABS}?watch=1")
    command = [KOPF, "run", "--standalone", "--quiet", "-n", "default", str(script)]
    with subprocess.Popen(command, env=environment) as operator:
        try:
            metadata = {"name": "a"}
            body = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": metadata}
            client.create(CRONTABS, {**body, "spec": {"schedule": "* * * * *"}})
            watch.until(lambda event: event["object"].get("status", {}).get("made") == "* * * * *")
            client.patch(f"{CRONTABS}/a", {"spec": {"replicas": 4}})
            watch.until(lambda event: "1 to 4" in event["object"].get("status", {}).values())
            client.call("DELETE", f"{CRONTABS}/a")
            watch.until(lambda event: event["type"] == "DELETED")
        finally:
            operator.terminate()
