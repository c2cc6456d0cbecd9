"""The flags of `kubestow scheduler`: names, forms, defaults, what wins over what, what is refused."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubestow.cli import main
from kubestow.cli.scheduler.flag_types import (
    BOOL,
    FEATURE_GATES,
    INT32,
    NAMED_CERT_KEY,
    QUANTITY,
    STRING_TO_STRING,
    STRINGS,
    FlagType,
)
from kubestow.cli.scheduler.flags import FLAGS, GROUPS, normalised
from kubestow.cli.scheduler.process import decision_options
from kubestow.cli.scheduler.settings import Flags

KUBE_SCHEDULER = """
Misc: config master write-config-to
Secure serving: bind-address=0.0.0.0 cert-dir disable-http2-serving http2-max-streams-per-connection
 permit-address-sharing permit-port-sharing secure-port=10259 tls-cert-file tls-cipher-suites tls-curve-preferences=[]
 tls-min-version tls-private-key-file tls-sni-cert-key=[]
Authentication: authentication-kubeconfig authentication-skip-lookup authentication-token-webhook-cache-ttl=10s
 authentication-tolerate-lookup-failure=true client-ca-file requestheader-allowed-names requestheader-client-ca-file
 requestheader-extra-headers-prefix=[x-remote-extra-] requestheader-group-headers=[x-remote-group]
 requestheader-uid-headers requestheader-username-headers=[x-remote-user]
Authorization: authorization-always-allow-paths=[/healthz,/readyz,/livez] authorization-kubeconfig
 authorization-webhook-cache-authorized-ttl=10s authorization-webhook-cache-unauthorized-ttl=10s
Deprecated: contention-profiling=true kube-api-burst=100 kube-api-content-type="application/vnd.kubernetes.protobuf"
 kube-api-qps=50 kubeconfig pod-max-in-unschedulable-pods-duration=5m0s policy-config-file policy-configmap
 policy-configmap-namespace="kube-system" profiling=true use-legacy-policy-config
Leader election: leader-elect=true leader-elect-lease-duration=15s leader-elect-renew-deadline=10s
 leader-elect-resource-lock="leases" leader-elect-resource-name="kube-scheduler"
 leader-elect-resource-namespace="kube-system" leader-elect-retry-period=2s
Feature gate: emulated-version feature-gates min-compatibility-version
Metrics: allow-metric-labels=[] allow-metric-labels-manifest disabled-metrics show-hidden-metrics-for-version
Logs: log-flush-frequency=5s log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
 log-text-split-stream logging-format="text" v vmodule
Global: version
"""


def _invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scheduler", *arguments])


def _invoke_without_credentials(home: Path, *arguments: str) -> Result:
    return CliRunner(env={"HOME": str(home), "KUBECONFIG": ""}).invoke(main, ["scheduler", *arguments])


def _written(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """The configuration that these flags come to."""
    target = tmp_path / "written.yaml"
    result = _invoke(*arguments, "--write-config-to", str(target))
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = yaml.safe_load(target.read_text())
    return found


OWN = ("Plugin", "Decision", "Tracing")
"""The groups of those that kube-scheduler does not have."""


def test_the_flags_are_those_of_kube_scheduler() -> None:
    """Groups, names and defaults, in order; those about a Policy are of its last version that had one."""
    listed = [
        f"{group}: " + " ".join(f"{flag.name}={flag.default_text}".removesuffix("=") for flag in flags)
        for group, flags in GROUPS.items()
        if group not in OWN
    ]
    assert listed == KUBE_SCHEDULER.strip().replace("\n ", " ").splitlines()


def test_help_shows_every_flag_in_its_group() -> None:
    """Each group is a section; each flag is there with its type."""
    text = _invoke("--help").output
    sections = re.split(r"^(\w[\w ]*) flags:$", text, flags=re.MULTILINE)
    shown = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert list(shown) == list(GROUPS)
    for group, flags in GROUPS.items():
        for flag in flags:
            assert f"--{flag.name} {flag.type.name}".rstrip() in shown[group]
    assert "-v, --v Level" in shown["Logs"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--leader-elect=false",),
        ("--leader_elect=F",),
        ("--leader-elect=true", "--leader-elect=0"),
    ],
)
def test_switches_take_a_value(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """After an equals sign, with underscores, and the last one counts."""
    assert _written(tmp_path, *arguments)["leaderElection"]["leaderElect"] is False


def test_a_switch_alone_is_true(tmp_path: Path) -> None:
    """Also in front of another flag."""
    written = _written(tmp_path, "--leader-elect=false", "--leader-elect", "--kube-api-qps=7")
    assert written["leaderElection"]["leaderElect"] is True
    assert written["clientConnection"]["qps"] == 7


def test_empty_arguments_are_none(tmp_path: Path) -> None:
    """As where a variable of a shell is empty."""
    assert _written(tmp_path, "", "--leader-elect", "")["leaderElection"]["leaderElect"] is True


def test_no_address_is_every_address() -> None:
    """As where a variable of a shell is empty; kube-scheduler takes its default."""
    assert FLAGS["bind-address"].type.parse("") == FLAGS["bind-address"].default


def test_short_forms_of_verbosity() -> None:
    """-v=4, -v4 and -v 4 are --v=4; values are left as they are, also those that look like flags."""
    given = ["-v=4", "-v4", "-v", "4", "--kube_api_qps=a_b", "--cert_dir", "--leader_elect", "--master", "-v4"]
    read = ["--v=4", "--v=4", "-v", "4", "--kube-api-qps=a_b", "--cert-dir", "--leader_elect", "--master", "-v4"]
    assert normalised(given) == read


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--no-such-flag",), "--no-such-flag"),
        (("--leader-elect=maybe",), "'--leader-elect': 'maybe' is neither true nor false"),
        (("--reload=maybe",), "'--reload': 'maybe' is neither on nor off"),
        (("--kube-api-burst=1.5",), "'--kube-api-burst': '1.5' is not a whole number"),
        (("--kube-api-burst=9999999999",), "'--kube-api-burst': 9999999999 is too large"),
        (("--bind-address=here",), "'--bind-address': 'here' is not an IP address"),
        (("--leader-elect-lease-duration=15",), "'--leader-elect-lease-duration'"),
        (("--tls-sni-cert-key=one",), "'--tls-sni-cert-key'"),
        (("--allow-metric-labels=metric",), "'metric' must be formatted as key=value"),
        (("--version=old",), "'--version': 'old' is neither true, false nor raw"),
        (("--config",), "--config"),
        (("pods", "", 'a"b'), 'scheduler" does not take any arguments, got ["pods" "" "a\\"b"]'),
        (("--leader-elect", "false"), 'scheduler" does not take any arguments, got ["false"]'),
        (("--leader_elect", "--version", "raw"), 'scheduler" does not take any arguments, got ["raw"]'),
        (("--ui", "true"), 'scheduler" does not take any arguments, got ["true"]'),
        (("--", "--leader_elect"), 'scheduler" does not take any arguments, got ["--leader_elect"]'),
    ],
)
def test_wrong_usage_ends_with_1_and_names_the_flag(arguments: tuple[str, ...], words: str) -> None:
    """Unknown flags, bad values, missing values, arguments."""
    result = _invoke(*arguments)
    assert result.exit_code == 1
    assert words in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--feature-gates=Nope=true",), "--feature-gates: unrecognized feature gate: Nope"),
        (("--logging-format=xml",), "--logging-format: must be text or json, not 'xml'"),
        (("--vmodule=queue",), "--vmodule: 'queue' is not PATTERN=LEVEL"),
        (("--vmodule=queue=2", "--logging-format=json"), "--vmodule: only works with --logging-format=text"),
        (("--log-flush-frequency=0",), "--log-flush-frequency: must be greater than 0"),
        (("--log-json-info-buffer-size=-1",), "--log-json-info-buffer-size: must not be negative"),
        (
            ("--requestheader-group-headers=a, ", "--master=http://127.0.0.1:1"),
            "--requestheader-group-headers: a header must have a name",
        ),
        (
            ("--requestheader-uid-headers=X-Uid", "--master=http://127.0.0.1:1"),
            "--requestheader-uid-headers: must name x-remote-uid, too",
        ),
        (("--disabled-metrics=a-b",), "--disabled-metrics requires full names of metrics"),
        (("--show-hidden-metrics-for-version=1.2",), "--show-hidden-metrics-for-version"),
        (("--config=/no/such/file",), "/no/such/file: cannot be read"),
        (("--kubeconfig=/no/such/file",), "/no/such/file: no such file"),
        (("--leader-elect-renew-deadline=20s",), "leaderElection.leaseDuration"),
        (
            ("--leader-elect-retry-period=9s",),
            "leaderElection.renewDeadline: must be longer than 1.2 times retryPeriod",
        ),
        (("--leader-elect-resource-name=",), "leaderElection.resourceName: must not be empty"),
        (("--secure-port=70000", "--master=http://127.0.0.1:1"), "--secure-port: 70000 is not a port"),
        (
            ("--tls-cert-file=/no/cert", "--tls-private-key-file=/no/key", "--master=http://127.0.0.1:1"),
            "--tls-cert-file: cannot use /no/cert with /no/key",
        ),
        (
            ("--client-ca-file=/no/ca", "--master=http://127.0.0.1:1"),
            "--client-ca-file: cannot read /no/ca: No such file or directory\n",
        ),
        (
            (f"--client-ca-file={sys.executable}", "--master=http://127.0.0.1:1"),
            f"--client-ca-file: {sys.executable} contains no PEM certificates",
        ),
        (
            ("--allow-metric-labels-manifest=/no/such/file", "--master=http://127.0.0.1:1"),
            "--allow-metric-labels-manifest: cannot read /no/such/file: No such file or directory\n",
        ),
        (
            ("--authorization-always-allow-paths=/healthz,/debug/*/heap", "--master=http://127.0.0.1:1"),
            "--authorization-always-allow-paths: a * may stand only at the end, not as in '/debug/*/heap'",
        ),
        (
            ("--tracing-plugins", "--master=http://127.0.0.1:1"),
            "--tracing-plugins: there are no spans without --tracing-config-file",
        ),
        (
            ("--authorization-kubeconfig=/no/such/file", "--master=http://127.0.0.1:1"),
            "--authorization-kubeconfig: /no/such/file: no such file",
        ),
        (
            ("--decision-log=/no/such/folder/log", "--master=http://127.0.0.1:1"),
            "--decision-log: cannot write /no/such/folder/log: No such file or directory",
        ),
        (
            ("--annotate-decisions", "--decision-records-bytes=0", "--master=http://127.0.0.1:1"),
            "--annotate-decisions: needs records; --decision-records-bytes must not be 0",
        ),
        (
            ("--tracing-config-file=/no/such/file", "--master=http://127.0.0.1:1"),
            "--tracing-config-file: cannot read /no/such/file: No such file or directory",
        ),
        (
            ("--ui", "--decision-records-bytes=0", "--master=http://127.0.0.1:1"),
            "--ui: needs records; --decision-records-bytes must not be 0",
        ),
        (
            ("--ui", "--secure-port=0", "--master=http://127.0.0.1:1"),
            "--ui: the page is served at the secure port; --secure-port must not be 0",
        ),
        (
            ("--decision-log-nodes", "--master=http://127.0.0.1:1"),
            "--decision-log-nodes: has no effect without --decision-log, which names the file to write",
        ),
        (
            ("--decision-log-max-backups=2", "--master=http://127.0.0.1:1"),
            "--decision-log-max-backups: has no effect without --decision-log, which names the file to write",
        ),
        (
            ("--decision-log=-", "--decision-log-max-size=-1", "--master=http://127.0.0.1:1"),
            "--decision-log-max-size: must not be negative",
        ),
    ],
)
def test_settings_that_cannot_be_used_end_with_1(arguments: tuple[str, ...], words: str) -> None:
    """What can only be checked after parsing is reported in one line, with the flag or the file."""
    result = _invoke(*arguments)
    assert result.exit_code == 1
    assert words in result.output
    assert "Traceback" not in result.output


def test_a_file_wins_over_deprecated_flags_and_loses_to_leader_election_flags(tmp_path: Path) -> None:
    """As in kube-scheduler."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "clientConnection: {qps: 11}\nleaderElection: {resourceName: from-file, retryPeriod: 3s}\n"
    )
    flags = ("--kube-api-qps=99", "--kubeconfig=x", "--leader-elect-resource-name=from-flag", "--profiling=false")
    written = _written(tmp_path, f"--config={file}", *flags)
    assert written["clientConnection"]["qps"] == 11
    assert written["clientConnection"]["kubeconfig"] == ""
    assert written["enableProfiling"] is True
    assert written["leaderElection"]["resourceName"] == "from-flag"
    assert written["leaderElection"]["retryPeriod"] == "3s"


def test_flags_that_a_file_overrides_are_named(tmp_path: Path) -> None:
    """With the fields to set instead, in one warning; an error names the field, too."""
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    flags = ("--kubeconfig=x", "--profiling", "--kube-api-burst=7", "--leader-elect=false")
    fields = (
        '["--kube-api-burst: clientConnection.burst","--kubeconfig: clientConnection.kubeconfig",'
        '"--profiling: enableProfiling"]'
    )
    said = f'"Flags have no effect with --config, set the fields instead" file="{file}" flags={fields}\n'
    assert _invoke(f"--config={file}", *flags, "--write-config-to=/dev/null").stderr.endswith(said)
    warned, _, error = _invoke_without_credentials(tmp_path, f"--config={file}", *flags).stderr.partition("Error: ")
    assert warned.endswith(said)
    assert error.startswith(f"credentials: none found: set clientConnection.kubeconfig in {file}, set KUBECONFIG")


def test_flags_count_without_a_warning_when_no_file_overrides_them(tmp_path: Path) -> None:
    """Nor is there one for flags that a file does not override."""
    assert _invoke("--kubeconfig=x", "--write-config-to=/dev/null").output == ""
    assert "give --kubeconfig" in _invoke_without_credentials(tmp_path).stderr


def test_without_a_file_deprecated_flags_count(tmp_path: Path) -> None:
    """All of them that stand in the configuration."""
    flags = (
        "--kube-api-qps=99.5",
        "--kube-api-burst=7",
        "--kubeconfig=x",
        "--kube-api-content-type=application/json",
        "--profiling=false",
        "--contention-profiling=false",
    )
    written = _written(tmp_path, *flags)
    connection = written["clientConnection"]
    assert (connection["qps"], connection["burst"], connection["kubeconfig"]) == (99.5, 7, "x")
    assert connection["contentType"] == "application/json"
    assert (written["enableProfiling"], written["enableContentionProfiling"]) == (False, False)


def test_feature_gates_add_up(tmp_path: Path) -> None:
    """Given twice, with and without the component's name."""
    assert _written(tmp_path, "--feature-gates=kube:GenericWorkload=true", "--feature-gates=kube:WorkloadWithJob=1")
    result = _invoke("--feature-gates=GenericWorkload=true", "--feature-gates=Nope=1", "--write-config-to=/dev/null")
    assert "Nope" in result.output


def test_gates_follow_the_emulated_version(tmp_path: Path) -> None:
    """A gate that is locked today can be set; wrong versions are reported with the flag."""
    gate = "--feature-gates=DRAPrioritizedList=false"
    assert _written(tmp_path, "--emulated-version=1.36", gate)["profiles"]
    assert "feature is locked to true" in _invoke(gate).output
    assert "NodeDeclaredFeatures" not in str(_written(tmp_path, "--emulated-version=1.35"))
    for flag, wrong, problem in (
        ("emulated-version", "kube=1.2", "emulation version 1.2 is not between [1.34, 1.37.0]"),
        ("min-compatibility-version", "new", 'could not parse "new" as version'),
    ):
        assert _invoke(f"--{flag}={wrong}").output == f"Error: --{flag}: {problem}\n"


def test_the_version_is_shown() -> None:
    """Nothing is started; raw shows all details."""
    assert _invoke("--version").output.startswith("Kubernetes v1.37")
    assert "git_version" in _invoke("--version=raw").output


@pytest.mark.parametrize(
    ("kind", "text", "value", "written"),
    [
        (BOOL, "T", True, "true"),
        (INT32, "0x10", 16, "16"),
        (STRINGS, 'a,"b,c"', ("a", "b,c"), "[a,b,c]"),
        (STRINGS, "", (), "[]"),
        (QUANTITY, "512Ki", 524288, "524288"),
        (STRING_TO_STRING, '"m,l=v1,v2",n=w', (("m,l", "v1,v2"), ("n", "w")), "[m,l=v1,v2,n=w]"),
        (STRING_TO_STRING, "m,l=v1,v2", (("m,l", "v1,v2"),), "[m,l=v1,v2]"),
        (FEATURE_GATES, "A=true,B=false", ("A=true", "B=false"), "A=true,B=false"),
        (NAMED_CERT_KEY, "c,k:a.b,*.c", (("c", "k", ("a.b", "*.c")),), "[c,k:a.b,*.c]"),
    ],
)
def test_types_read_and_write_values(kind: FlagType, text: str, value: Any, written: str) -> None:
    """As kube-scheduler reads them, and as /flagz shows them."""
    assert kind.parse(text) == value
    assert kind.write(value) == written


def test_every_default_can_be_shown() -> None:
    """/flagz writes all flags, given or not."""
    assert json.dumps({name: flag.type.write(flag.default) for name, flag in FLAGS.items()})


@pytest.mark.parametrize(
    ("given", "room"),
    [
        ({}, 128 << 20),
        ({"secure-port": 0}, 0),
        ({"secure-port": 0, "decision-records-bytes": 1 << 20}, 1 << 20),
        ({"secure-port": 0, "decision-log": "-"}, 128 << 20),
        ({"secure-port": 0, "annotate-decisions": True}, 128 << 20),
    ],
)
def test_records_that_cannot_be_read_are_not_kept(given: dict[str, Any], room: int) -> None:
    """Unless the flag says how many there may be."""
    values = {flag.name: flag.default for flag in FLAGS.values()}
    assert decision_options(Flags(values | given, frozenset(given))).record_bytes == room
