"""`kubestow config`."""

from pathlib import Path

from click.testing import CliRunner, Result

from kubestow import config
from kubestow.cli import main
from kubestow.config import policy

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run_config(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, ["config", *arguments], input=stdin)


def test_default_writes_a_complete_valid_configuration() -> None:
    """What it writes is the default configuration, and loads."""
    done = run_config("default")
    assert done.exit_code == 0
    assert config.load(done.stdout) == config.default()


def test_default_follows_the_feature_gates() -> None:
    """Gates may be given in one option or several."""
    done = run_config("default", "--feature-gates", "GenericWorkload=true", "--feature-gates", "WorkloadWithJob=true")
    assert "GangScheduling" in done.stdout
    assert "GangScheduling" not in run_config("default").stdout


def test_wrong_feature_gates_are_an_error_of_usage() -> None:
    """The error names the option."""
    done = run_config("default", "--feature-gates", "Nope=true")
    assert done.exit_code == 2
    assert "Invalid value for '--feature-gates': unrecognized feature gate: Nope" in done.stderr


def test_validate_reports_every_problem_on_its_own_line(tmp_path: Path) -> None:
    """A line is file, path and message; a good file is said to be valid; any fault is exit code 1."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(HEAD)
    bad.write_text(HEAD + "parallelism: 0\npercentageOfNodesToScore: 101\n")
    done = run_config("validate", str(good), str(bad))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{good}: valid",
        f"{bad}: parallelism: must be greater than 0, not 0",
        f"{bad}: percentageOfNodesToScore: must be from 0 to 100, not 101",
    ]
    assert run_config("validate", str(good)).exit_code == 0


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    """A missing file, a directory and a binary file each get a line, not a traceback."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    done = run_config("validate", str(tmp_path / "none"), str(tmp_path), str(binary))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{tmp_path / 'none'}: cannot be read: No such file or directory",
        f"{tmp_path}: cannot be read: Is a directory",
        f"{binary}: is not UTF-8 text: invalid start byte at byte 0",
    ]


def test_validate_wants_a_file() -> None:
    """Without a file it is an error of usage."""
    assert run_config("validate").exit_code == 2


def test_complete_writes_the_completed_configuration() -> None:
    """Defaults are filled in; standard input is accepted."""
    done = run_config("complete", "-", stdin=HEAD + "parallelism: 3\n")
    assert done.exit_code == 0
    assert "parallelism: 3\n" in done.stdout
    assert "podMaxBackoffSeconds: 10\n" in done.stdout


def test_complete_refuses_a_wrong_configuration() -> None:
    """Problems go to standard error, and nothing is written."""
    done = run_config("complete", "-", stdin="apiVersion: v1\nkind: Pod\n")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert '-: kind: no kind "Pod" is known in version "v1"; kind must be KubeSchedulerConfiguration' in done.stderr


POLICY = """
apiVersion: v1
kind: Policy
predicates: [{name: HostName}, {name: zoned, argument: {labelsPresence: {labels: [zone], presence: true}}}]
priorities: [{name: ImageLocalityPriority, weight: 3}]
"""


def test_translate_writes_what_does_the_same(tmp_path: Path) -> None:
    """The configuration that the Policy comes to, without what is as always, whatever the Policy is read from."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    done = run_config("translate", str(path))
    assert done.exit_code == 0
    assert config.load(done.stdout) == policy.load(POLICY)
    assert done.stdout.index("profiles:") > done.stdout.index("kind:")
    assert not {"leaderElection", "NodeNameArgs", "weight: 0", "{}"} & set(done.stdout.replace(":", ": ").split(": "))
    assert len(done.stdout.splitlines()) < 60
    assert run_config("translate", "-", stdin=POLICY).stdout == done.stdout


def test_translate_says_what_kube_scheduler_lacks() -> None:
    """In comments: each plugin that only Kubestow has, with what to use instead, and the field."""
    (comment,) = [
        line for line in run_config("translate", "-", stdin=POLICY).stdout.splitlines() if line.startswith("#")
    ]
    assert comment.startswith("# kube-scheduler no longer has the plugin NodeLabel; there, use node affinity")
    everything = run_config(
        "translate", "-", stdin="apiVersion: v1\nkind: Policy\nalwaysCheckAllPredicates: true\n"
    ).stdout
    assert "# kube-scheduler no longer has alwaysCheckAllPredicates; there, remove the field.\n" in everything
    assert "# kube-scheduler no longer has the plugin NodePreferAvoidPods; there, taint" in everything


def test_translate_refuses_what_is_no_policy() -> None:
    """Every fault is a line with the path of the field."""
    done = run_config(
        "translate", "-", stdin="kind: Policy\napiVersion: v1\npredicates: [{name: Nope}]\npriority: []\n"
    )
    assert done.exit_code == 1
    unknown, predicate = done.stderr.splitlines()
    assert unknown == "-: priority: is not a known field"
    assert predicate.startswith('-: predicates[0]: there is no predicate "Nope"; ')


def test_translate_knows_what_needs_no_translation() -> None:
    """A configuration is not a Policy, and need not be one."""
    done = run_config("translate", "-", stdin=config.dump(config.default()))
    words = "this is already a KubeSchedulerConfiguration, not a Policy: use it unchanged, with --config"
    assert (done.exit_code, done.stderr) == (1, f"-: kind: {words}\n")
