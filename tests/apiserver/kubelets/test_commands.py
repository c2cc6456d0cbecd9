"""Prediction of containers from their commands."""

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
    """Simple commands are predicted, others are unknown."""
    assert predict({"command": command}) == done


@pytest.mark.parametrize("image", ["registry.example/pause:3.10", "pause", "pause-amd64:3"])
def test_a_pause_image_waits(image: str) -> None:
    """Until it is stopped."""
    assert predict({"image": image}) == Prediction(FOREVER, 0)
    assert predict({"image": "example/pausable:1"}) is None


def script(policy: str, **annotations: str) -> Script:
    """Return the script of a pod that fails after five seconds."""
    texts = {f"kubestow.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    container: dict[str, Any] = {"name": "c", "command": ["sh", "-c", "sleep 5; exit 3"]}
    metadata = {"uid": "u", "annotations": texts}
    return Script({"metadata": metadata, "spec": {"restartPolicy": policy, "containers": [container]}}, Pace())


def test_commands_of_a_pod_that_ends_are_predicted() -> None:
    """Annotations take precedence; a pod with restart policy Always runs forever."""
    predicted = script("Never")
    assert (predicted.run("c", "main"), predicted.exit_code("c", "main", 0)) == (5, 3)
    predicted = script("OnFailure", run_seconds="9", exit_code="0")
    assert (predicted.run("c", "main"), predicted.exit_code("c", "main", 0)) == (9, 0)
    assert script("Always").run("c", "main") == FOREVER
