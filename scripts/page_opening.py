"""Opens the page of a cluster in Chromium: runs `kubestow up` in a process of its own, and creates pods."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def deployment(name: str, replicas: int, requests: str, spec: str = "") -> str:
    """Return a manifest; `spec` contains fields of the pods' spec before their containers."""
    limits = ", limits: {nvidia.com/gpu: 2}" if "gpu" in requests else ""
    container = f"{{name: c, image: {name}, resources: {{requests: {{{requests}}}{limits}}}}}"
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{{spec}containers: [{container}]}}}}
---"""


def address_in(text: str) -> str | None:
    """Return the address of the page with its token, if the output of a program contains it."""
    found = re.search(r"http://\S+#token=\S+", text)
    return None if found is None else found[0]


@contextmanager
def opened(*command: str | Path) -> Iterator[tuple[str, int]]:
    """Run a Python program that serves the page; yields its address and the process ID."""
    with tempfile.NamedTemporaryFile("w+") as log:
        process = subprocess.Popen([sys.executable, *command], stdout=log, stderr=log)
        try:
            while (address := address_in(Path(log.name).read_text())) is None:
                if process.poll() is not None:
                    raise SystemExit(Path(log.name).read_text())
                time.sleep(0.2)
            yield address, process.pid
        finally:
            process.terminate()
            process.wait()


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Yield Debian's Chromium; without its sandbox if run by root."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield browser
        browser.close()
