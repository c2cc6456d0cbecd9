"""The container image as built by deploy/build-image: runs without privileges on a read-only root."""

import os
import subprocess
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from support.apiserver.running import run_bare
from support.integration.cluster import PODS, node, pod
from support.polling import until
from support.repository import ROOT

IMAGE = os.environ.get("KUBESTOW_IMAGE", "")
with_image = pytest.mark.skipif(not IMAGE, reason="`make image` builds one and sets KUBESTOW_IMAGE; needs buildah")
READ_ONLY = """
mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && mount -t tmpfs tmpfs "$0/tmp" && cat >"$0/tmp/kubeconfig" &&
chmod 644 "$0/tmp/kubeconfig" && exec chroot --userspec=65532:65532 "$0" \\
/usr/bin/env -i PATH=/opt/kubestow/bin:/usr/bin "$@"
"""


@pytest.fixture
def root() -> Iterator[Path]:
    """Yield the files of the image."""
    container = subprocess.run(["buildah", "from", IMAGE], capture_output=True, text=True, check=True).stdout.strip()
    mounted = subprocess.run(["buildah", "mount", container], capture_output=True, text=True, check=True).stdout.strip()
    yield Path(mounted)
    subprocess.run(["buildah", "rm", container], capture_output=True, check=True)


def test_the_dockerfile_and_the_script_agree() -> None:
    """The Dockerfile and the script agree on user, port, command, environment, packages and paths."""
    docker = (ROOT / "deploy/Dockerfile").read_text()
    script = (ROOT / "deploy/build-image").read_text()
    for word in (
        *("65532:65532", "10259", "kubestow", "scheduler", "/opt/kubestow/lib", "requirements/run.txt", "bookworm"),
        *("PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PATH=/opt/kubestow/bin:/usr/bin:/bin", "--only-binary"),
        *(
            "python3-minimal",
            "libpython3-stdlib",
            "libstdc++6",
            "ca-certificates",
            "--require-hashes",
            "deploy/kubestow",
        ),
    ):
        assert word in docker, word
        assert word in script, word


@with_image
def test_all_modules_are_compiled(root: Path) -> None:
    """The root is read-only: modules that are not compiled in the image would be compiled at every start."""
    modules = [*(root / "opt/kubestow/lib/kubestow").rglob("*.py")]
    assert modules
    assert [str(module) for module in modules if not Path(cache_from_source(str(module))).exists()] == []


@with_image
def test_it_schedules_without_privileges_on_a_read_only_root(root: Path) -> None:
    """As user 65532, with only /tmp writable."""
    plane = run_bare()
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    client.create(PODS, pod("p"))
    command = ["unshare", "-m", "sh", "-c", READ_ONLY, str(root), "kubestow", "scheduler"]
    flags = ["--kubeconfig=/tmp/kubeconfig", "--secure-port=0"]
    with subprocess.Popen([*command, *flags], stdin=subprocess.PIPE) as scheduler:
        assert scheduler.stdin is not None
        scheduler.stdin.write(plane.control_plane.kubeconfig_path.read_bytes())
        scheduler.stdin.close()
        until(lambda: scheduler.poll() is not None or client.get(f"{PODS}/p")["spec"].get("nodeName"))
        assert scheduler.poll() is None
        status = Path(f"/proc/{scheduler.pid}/status").read_text()
        scheduler.terminate()
    client.close()
    plane.stop()
    assert "\nUid:\t65532\t65532\t65532\t65532\n" in status
    assert scheduler.returncode == 0
