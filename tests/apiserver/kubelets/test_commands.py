"""What stand-in kubelets make of a container's command."""

from typing import Any

import pytest

from kubestow.apiserver.kubelets.commands import Prediction, predict
from kubestow.apiserver.kubelets.scripts import Pace, Script

FOREVER = float("inf")


@pytest.mark.parametrize(
    ("command", "done"),
    [
        (["sleep", "300"], Prediction(300, 0)),
        (["/bin/sleep", "1.5m"], Prediction(90, 0)),
        (["sleep", "infinity"], Prediction(FOREVER, 0)),
        (["true"], Prediction(0, 0)),
        (["false"], Prediction(0, 1)),
        (["/bin/sh", "-c", "exit 1"], Prediction(0, 1)),
        (["sh", "-c", "echo 'a; b'"], None),
        (["sh", "-c", "date; sleep 5 && sleep 2; exit 42"], Prediction(7, 42)),
        (["sh", "-c", "\n sleep 1\n exit\n"], Prediction(1, 0)),
        (["sh", "-c", "false; exit"], Prediction(0, 1)),
        (["sh", "-c", "false; echo on"], None),
        (["sh", "-c", "if [ -r x ]; then exit 0; fi"], None),
        (["sh", "-c", "exit $CODE"], None),
        (["sh", "-c", "echo 'open"], None),
        (["sh", "-c", "sleep long"], None),
        (["sleep", "1", "2"], None),
        (["serve"], None),
    ],
)
def test_commands(command: list[str], done: Prediction | None) -> None:
    """Plain ones are taken at their word, of others nobody knows."""
    assert predict({"command": command}) == done


@pytest.mark.parametrize("image", ["registry.example/pause:3.10", "pause", "pause-amd64:3"])
def test_a_pause_image_waits(image: str) -> None:
    """Until it is told to stop."""
    assert predict({"image": image}) == Prediction(FOREVER, 0)
    assert predict({"image": "example/pausable:1"}) is None


def script(policy: str, **annotations: str) -> Script:
    """The script of a pod that fails after five seconds."""
    said = {f"kubestow.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    container: dict[str, Any] = {"name": "c", "command": ["sh", "-c", "sleep 5; exit 3"]}
    metadata = {"uid": "u", "annotations": said}
    return Script({"metadata": metadata, "spec": {"restartPolicy": policy, "containers": [container]}}, Pace())


def test_a_pod_that_is_meant_to_finish_does_what_it_says() -> None:
    """Annotations have the last word; a pod that runs forever does so whatever its command."""
    told = script("Never")
    assert (told.run("c", "main"), told.exit_code("c", "main", 0)) == (5, 3)
    told = script("OnFailure", run_seconds="9", exit_code="0")
    assert (told.run("c", "main"), told.exit_code("c", "main", 0)) == (9, 0)
    assert script("Always").run("c", "main") == FOREVER
