"""Every command of the documentation is run, and answers what the page shows; or it is said here why it is not."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from kubestow.cli import main
from support.docs.pages import PAGES, TESTED_APART, File, Typed, commands, name_of, steps
from support.docs.reader import Reader, says, server_arguments
from support.repository import ROOT

NOT_RUN = {
    "make test": "these are the tests",
    "pip install ": "needs the network; tests/integration/test_tracing.py runs where it is installed",
    "kubestow doctor --kubeconfig /etc/": "needs a control-plane node; tests/cli/test_doctor.py runs it",
    "go tool pprof ": "needs Go; tests/server/test_profiles.py runs it where there is one",
    "docker ": "needs Docker; tests/packages/test_image.py compares the Dockerfile with what was tried",
    "helm ": "needs Helm; tests/packages/test_cluster_files.py renders and applies the chart",
    "go run ": "needs Go and the network",
    "KUBEBUILDER_ASSETS=": "needs kube-apiserver; tests marked `real` are what it runs",
    "kube-scheduler ": "needs the program; tests/apiserver/test_kubernetes_programs.py runs it",
    "kube-controller-manager ": "needs the program; tests/apiserver/test_kubernetes_programs.py runs it",
    "curl -k -H ": "needs a scheduler in a cluster; tests/server/test_who_may_read.py asks in its place",
    "kubectl create serviceaccount monitor": "needs a scheduler in a cluster, as do those that follow",
    "kubectl create clusterrole": "needs a scheduler in a cluster; tests/integration/test_least_privilege.py grants it",
    "kubectl -n kube-system ": "needs a scheduler in a cluster; tests/cli/test_deploy_files.py reads the manifests",
    "kubectl apply -k deploy/": "needs a registry with the image; tests/packages/test_cluster_files.py applies it",
    "kubectl get events -A ": "needs a scheduler in a cluster",
    "kubectl get pods -w": "watches until it is stopped",
}
"""How commands begin that no test types, and why."""

_RUNS = (
    *("kubestow config ", "kubestow plugin ", "kubestow scheduler ", "kubestow simulate ", "kubestow capacity "),
    *(
        "kubestow explain -f web.yaml --cluster ",
        "kubestow compare ",
        "kubestow sweep ",
        "pytest ",
        "cat ",
        "grep ",
        "sed ",
        "echo ",
        "export ",
    ),
)
_WITH_A_CLUSTER = ("kubectl ", "kubestow explain ", "python ", "kill ")
"""Typed where there is kubectl, which has brought the cluster to what the page shows."""
_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

with_commands = pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page) and name_of(page) not in TESTED_APART], ids=name_of
)


def reason_not_to(command: str) -> str | None:
    return next((why for start, why in NOT_RUN.items() if command.startswith(start)), None)


def plain(command: str) -> str:
    return command.removeprefix(".venv/bin/")


def _runs(command: str) -> bool:
    """Return whether a command runs without a cluster; `$files` names files with one."""
    return plain(command).startswith(_RUNS) or "$files" in command


HAS_KUBECTL = shutil.which("kubectl") is not None
WITH_KUBECTL = [
    page
    for page in PAGES
    if any(command.startswith("kubectl ") and reason_not_to(command) is None for command, _ in commands(page))
]
"""Pages with commands for kubectl that can be run here."""


@with_commands
def test_every_command_is_accounted_for(page: Path) -> None:
    """It is run by a test below, or there is a reason why not."""
    for command, _ in commands(page):
        typed = plain(command).startswith((*_RUNS, *_WITH_A_CLUSTER))
        known = typed or server_arguments(command) is not None
        assert known or reason_not_to(command), f"{command}: neither run nor listed with a reason"


def test_no_reason_is_left_over() -> None:
    """Every reason is about a command that is there."""
    every = [command for page in PAGES for command, _ in commands(page)]
    assert [start for start in NOT_RUN if not any(command.startswith(start) for command in every)] == []
    for page, test in TESTED_APART.items():
        assert Path(page).name in (ROOT / test).read_text()


@with_commands
def test_make_has_the_targets(page: Path) -> None:
    """Also those that are only mentioned in the text."""
    mentioned = re.findall(r"`make ([a-z-]+)", page.read_text())
    typed = [command.split()[1] for command, _ in commands(page) if command.startswith("make ")]
    assert {*mentioned, *typed} - _TARGETS == set()


@with_commands
def test_commands_answer_what_is_shown(page: Path, tmp_path: Path) -> None:
    """In one shell, from top to bottom; without what needs kubectl."""
    todo = list(steps(page))
    if HAS_KUBECTL and page in WITH_KUBECTL:
        pytest.skip("kubectl is there: the test below runs everything")
    run = [step for step in todo if isinstance(step, File) or _runs(step.command)]
    if not any(isinstance(step, Typed) for step in run):
        pytest.skip("nothing but servers and kubectl")
    _read(tmp_path, run)


@pytest.mark.kubectl
@pytest.mark.skipif(not HAS_KUBECTL, reason="kubectl is not on PATH")
@pytest.mark.parametrize("page", WITH_KUBECTL, ids=name_of)
def test_kubectl_answers_what_is_shown(page: Path, tmp_path: Path) -> None:
    """All commands of the page, with the clusters that it starts."""
    _read(tmp_path, [step for step in steps(page) if isinstance(step, File) or reason_not_to(step.command) is None])


def _read(folder: Path, todo: Sequence[Typed | File]) -> None:
    reader = Reader(folder)
    try:
        for number, step in enumerate(todo):
            following = todo[number + 1] if number + 1 < len(todo) else None
            asks = isinstance(following, Typed) and following.command == "echo $?"
            reader.do(step, may_fail=asks)
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("page", "command"),
    [
        (name_of(page), command)
        for page in PAGES
        for command, _ in commands(page)
        if plain(command).startswith(("kubestow ", "make up"))
    ],
)
def test_options_are_known(page: str, command: str) -> None:
    """Also of commands that need a cluster, or go on running."""
    words = server_arguments(command) or plain(command).split()[1:]
    found: click.Command | None = main
    with click.Context(main) as context:
        while isinstance(found, click.Group):
            found = found.get_command(context, words.pop(0))
    assert found is not None, f"{page}: {command}"
    known = {name for parameter in found.params for name in parameter.opts + parameter.secondary_opts}
    used = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert used - known == set(), f"{page}: {command}"


def test_a_wrong_answer_is_noticed() -> None:
    """The comparison can fail."""
    assert says(Typed("kubectl get x", ["web-0123456789-abcde  1s"]), ["web-9876543210-xyzxy 12s"])
    assert not says(Typed("kubectl get x", ["pod/a created"]), ["pod/b created"])
    assert says(Typed("kubestow x", ["a", "...", "b ... d"]), ["a", "1", "2", "b c d"])
    assert not says(Typed("kubestow x", ["a", "..."]), ["b"])
