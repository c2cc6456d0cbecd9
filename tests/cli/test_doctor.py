"""`kubestow doctor`: what it finds in a cluster, and what it advises."""

import json
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import CliRunner, Result

from kubestow import config
from kubestow.cli import main
from support.apiserver.fixtures import shared_plane
from support.apiserver.running import TOKEN, Running
from support.client.authority import Authority
from support.integration.custom_definitions import DEFINITIONS, definition
from support.polling import until

__all__ = ["shared_plane"]
"""Fixtures."""

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

pytestmark = pytest.mark.control_plane(tokens="reader,jane,2\n")


class Refusal(NamedTuple):
    """A page that is not served, with its status code."""

    code: int


@pytest.fixture
def doctor(shared_plane: Running) -> Callable[..., Result]:
    def run(*arguments: str) -> Result:
        given = () if "--kubeconfig" in arguments else ("--kubeconfig", str(shared_plane.control_plane.kubeconfig_path))
        return CliRunner().invoke(main, ["doctor", *given, *arguments])

    return run


@pytest.fixture
def serve() -> Iterator[Callable[[dict[str, Any]], str]]:
    """Serves pages by their paths, whatever the method; returns where."""
    started: list[ThreadingHTTPServer] = []

    def begin(pages: dict[str, Any]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                page, code = pages.get(self.path, Refusal(404)), 200
                if isinstance(page, Refusal):
                    code, page = page.code, {"kind": "Status", "code": page.code, "reason": "No", "message": "not now"}
                body = page.encode() if isinstance(page, str) else json.dumps(page).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        started.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield begin
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.fixture
def running_scheduler(serve: Callable[[dict[str, Any]], str]) -> Callable[..., str]:
    """Serves a configuration and metrics, as a kube-scheduler does; returns where."""

    def begin(changes: dict[str, Any], metrics: str = "") -> str:
        shown = yaml.safe_load(config.dump(config.default())) | changes
        return serve({"/configz": {"componentconfig": shown}, "/metrics": metrics})

    return begin


def test_all_is_well(doctor: Callable[..., Result], running_scheduler: Callable[..., str]) -> None:
    """Every check is reported, and the exit code is 0."""
    done = doctor("--server", running_scheduler({}))
    assert done.exit_code == 0, done.output
    for words in (
        "API server v1.37",
        "clocks agree",
        "all 56 permissions are granted",
        "resource.k8s.io/v1: resourceclaims",
    ):
        assert words in done.output
    assert "the lease kube-system/kube-scheduler has no holder" in done.output
    assert "the configurations are the same" in done.output
    assert "0 problems" in done.output


def test_what_differs_from_the_running_scheduler(
    doctor: Callable[..., Result], running_scheduler: Callable[..., str]
) -> None:
    """A plugin that is not here is a problem; other differences are reported with what to do."""
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": [{"name": "Homemade"}]}}}
    metrics = 'kubernetes_feature_enabled{name="GenericWorkload",stage="ALPHA"} 1\n'
    url = running_scheduler({"podMaxBackoffSeconds": 99, "profiles": [profile]}, metrics)
    done = doctor("--server", url)
    assert done.exit_code == 1
    assert "profile default-scheduler enables the plugin Homemade, which is not installed here" in done.output
    assert "podMaxBackoffSeconds is 99 there and 10 here" in done.output
    assert "multiPoint.enabled[Homemade] is set there and not set here\n" in done.output
    assert "pass the same file with --config, or the same flags" in done.output
    assert "the gate GenericWorkload is on there and off here" in done.output
    assert "pass --feature-gates=GenericWorkload=true" in done.output


def test_a_plugin_in_one_of_the_configurations_is_one_line(
    doctor: Callable[..., Result], running_scheduler: Callable[..., str], tmp_path: Path
) -> None:
    """Its name and a weight of 0 say nothing more; a weight does."""
    file = tmp_path / "config.yaml"
    score = "{disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 7}]}"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{score: {score}}}}}]\n"
    )
    lines = doctor("--server", running_scheduler({}), "--config", str(file)).output.splitlines()
    score = "profiles[default-scheduler].plugins.score"
    assert [line.removeprefix("note    ") for line in lines if score in line] == [
        f"{score}.disabled[ImageLocality] is not set there and set here",
        f"{score}.enabled[NodeAffinity] is not set there and set here",
        f"{score}.enabled[NodeAffinity].weight is not set there and 7 here",
    ]


def test_a_profile_in_one_of_the_configurations_is_one_line(
    doctor: Callable[..., Result], running_scheduler: Callable[..., str], tmp_path: Path
) -> None:
    """As it is for a second scheduler: what its fields say is compared with nothing."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {resourceName: second}\nprofiles: [{schedulerName: second}]\n"
    )
    done = doctor("--server", running_scheduler({}), "--config", str(file))
    assert done.exit_code == 0, done.output
    assert [line.removeprefix("note    ") for line in done.output.splitlines() if " there and " in line] == [
        "leaderElection.resourceName is kube-scheduler there and second here",
        "profiles[default-scheduler] is set there and not set here",
        "profiles[second] is not set there and set here",
    ]


def test_two_that_would_schedule_the_same_pods(
    doctor: Callable[..., Result], running_scheduler: Callable[..., str], tmp_path: Path
) -> None:
    """The same scheduler name, and a lease of its own."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {resourceName: kubestow}\n"
    )
    done = doctor("--server", running_scheduler({}), "--config", str(file))
    assert done.exit_code == 1
    assert "both schedule pods of default-scheduler, and each has its own lease" in done.output


def test_one_that_schedules_without_a_lease(
    doctor: Callable[..., Result], running_scheduler: Callable[..., str]
) -> None:
    """Nothing keeps the two apart but that one is stopped first."""
    done = doctor("--server", running_scheduler({"leaderElection": {"leaderElect": False}}))
    assert done.exit_code == 1
    assert "leaderElection.leaderElect is false there and true here" in done.output
    assert "does so without holding a lease" in done.output
    assert "stop it before the new one starts" in done.output
    assert "each has its own lease" not in done.output


def test_no_election_beside_a_leader(shared_plane: Running, doctor: Callable[..., Result], tmp_path: Path) -> None:
    """The leader is reported."""
    client = shared_plane.client()
    client.create(LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "the-other"}})
    try:
        assert "the-other holds the lease" in doctor().output
        file = tmp_path / "config.yaml"
        file.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "leaderElection: {leaderElect: false}\n"
        )
        done = doctor("--config", str(file))
        assert done.exit_code == 1
        assert "the-other leads; without leader election both would schedule pods" in done.output
    finally:
        client.call("DELETE", f"{LEASES}/kube-scheduler")
        client.close()


def test_a_leader_that_is_gone(shared_plane: Running, doctor: Callable[..., Result]) -> None:
    """An expired lease is not a problem."""
    client = shared_plane.client()
    spec = {"holderIdentity": "gone", "renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}
    client.create(LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": spec})
    try:
        done = doctor()
        assert done.exit_code == 0
        assert "gone held the lease kube-system/kube-scheduler, and has not renewed it for" in done.output
    finally:
        client.call("DELETE", f"{LEASES}/kube-scheduler")
        client.close()


def test_rights_that_are_missing(shared_plane: Running, doctor: Callable[..., Result], tmp_path: Path) -> None:
    """Each is named, with the roles that have them."""
    content = yaml.safe_load(shared_plane.control_plane.kubeconfig_path.read_text())
    content["users"][0]["user"] = {"token": "reader"}
    path = tmp_path / "reader.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    done = doctor("--kubeconfig", str(path))
    assert done.exit_code == 1
    assert "create pods/binding" in done.output
    assert "; create, patch events.events.k8s.io; " in done.output
    assert "; create, delete, update resourceclaims.resource.k8s.io; " in done.output
    assert "; update resourceclaims/binding.resource.k8s.io" in done.output
    assert "podgroups" not in done.output
    done = doctor("--kubeconfig", str(path), "--feature-gates=GenericWorkload=true,CoordinatedLeaderElection=true")
    assert "patch podgroups/status.scheduling.k8s.io" in done.output
    assert "create, update leasecandidates.coordination.k8s.io" in done.output
    assert "bind the roles system:kube-scheduler and system:volume-scheduler" in done.output


def test_kinds_of_a_plugin(
    shared_plane: Running, doctor: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing definition is a note; a missing permission names the command that prints the role."""
    file = tmp_path / "guard.py"
    file.write_text(
        "from kubestow.plugin import PriorityClass, unstructured, watch\n"
        'Quota = unstructured("example.com/v1", "quotas", "Quota")\n'
        "class Guard:\n"
        "    name = 'Guard'\n"
        "    watches = (watch(Quota, writes=('status',), when_unavailable='block'), PriorityClass)\n"
        "    def __init__(self, args, handle): ...\n"
        "    def filter(self, state, pod, node): ...\n"
    )
    output = doctor("--plugin", str(file)).output
    assert "plugin Guard: the server has no quotas, quotas/status of example.com/v1" in output
    assert "until then the plugin rejects pods" in " ".join(output.split())
    assert "plugin Guard: all 5 permissions are granted" in output
    client = shared_plane.client()
    client.create(DEFINITIONS, definition("example.com", "Quota", "v1"))
    until(lambda: client.call("GET", "/apis/example.com/v1")[0] == 200)
    output = " ".join(doctor("--plugin", str(file)).output.split())
    assert "no quotas/status of example.com/v1 -> add `subresources: {status: {}}` to the definition" in output
    content = yaml.safe_load(shared_plane.control_plane.kubeconfig_path.read_text())
    content["users"][0]["user"] = {"token": "reader"}
    reader = tmp_path / "reader.kubeconfig"
    reader.write_text(yaml.safe_dump(content))
    output = " ".join(doctor("--kubeconfig", str(reader), "--plugin", str(file)).output.split())
    assert "PROBLEM plugin Guard: missing permissions: patch quotas/status.example.com" in output
    assert f"kubestow plugin rbac {file}" in output
    info = tmp_path / "guards-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guards\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[kubestow.plugins]\nGuard = guard:Guard\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    configuration = tmp_path / "guards.yaml"
    configuration.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {enabled: [{name: Guard}]}}}]\n"
    )
    output = " ".join(doctor("--kubeconfig", str(reader), "--config", str(configuration)).output.split())
    assert "`kubestow plugin rbac Guard`" in output


def test_a_clock_that_is_off(doctor: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """By how much."""
    import time

    monkeypatch.setattr("kubestow.cli.doctor.process.time", SimpleNamespace(time=lambda: time.time() + 600))
    done = doctor()
    assert done.exit_code == 1
    assert "run an NTP client" in done.output
    assert "this clock differs from the server's by +" in done.output


def test_a_port_that_is_taken(doctor: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a kube-scheduler on the same machine, most likely."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr("kubestow.cli.doctor.process._PORT", taken.getsockname()[1])
        done = doctor()
    assert done.exit_code == 0
    assert "another process listens on port" in done.output
    assert "choose another --secure-port" in done.output


def test_a_server_that_lacks_much(
    serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result], tmp_path: Path
) -> None:
    """A version that was never tried and kinds that are not there are notes, an election without end is a problem."""
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    url = serve({"/version": {"gitVersion": "v1.29.3", "minor": "29"}, reviews: {"status": {"allowed": True}}})
    arguments = ("--kubeconfig", str(_kubeconfig(tmp_path, url)))
    done = doctor(*arguments)
    assert done.exit_code == 0, done.output
    assert "API server v1.29.3; tested versions are v1.30 to v1.37" in done.output
    assert "the server's clock is unknown" in done.output
    assert "resource.k8s.io/v1: the server has no resourceclaims, resourceslices, deviceclasses" in done.output
    done = doctor(*arguments, "--feature-gates=CoordinatedLeaderElection=true")
    assert done.exit_code == 1
    assert "the server has no leasecandidates, so that no leader is elected" in done.output
    assert "--runtime-config=coordination.k8s.io/v1beta1=true" in done.output
    assert ", 1 problem\n" in done.output


def test_a_server_that_has_pod_groups_only_in_an_older_version(
    serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result], tmp_path: Path
) -> None:
    """The version is named, as the server seems to have what is missing."""
    group = "/apis/scheduling.k8s.io"
    pages = {
        "/version": {"gitVersion": "v1.36.4", "minor": "36"},
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {"status": {"allowed": True}},
        group: {"versions": [{"groupVersion": f"scheduling.k8s.io/{one}"} for one in ("v1", "v1alpha2")]},
        f"{group}/v1": {"resources": [{"name": "priorityclasses"}]},
        f"{group}/v1alpha2": {"resources": [{"name": "podgroups"}]},
    }
    done = doctor("--kubeconfig", str(_kubeconfig(tmp_path, serve(pages))), "--feature-gates=GenericWorkload=true")
    assert done.exit_code == 0, done.output
    expected = "the server has no podgroups; those of scheduling.k8s.io/v1alpha2 are not supported"
    assert f"note    scheduling.k8s.io/v1beta1: {expected}\n" in done.output


def test_a_running_scheduler_that_does_not_serve_its_configuration(
    shared_plane: Running, serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result], tmp_path: Path
) -> None:
    """Because it is none, or cannot be trusted; the message says what to do."""
    done = doctor("--server", serve({}))
    assert done.exit_code == 1
    assert "PROBLEM the configurations are not compared: http://" in done.output
    assert "does not report its configuration" in done.output
    assert "make sure that --server is the secure port of a running kube-scheduler" in done.output
    other = tmp_path / "other.crt"
    other.write_bytes(Authority().pem)
    done = doctor("--server", shared_plane.control_plane.url, "--certificate-authority", str(other))
    assert done.exit_code == 1
    assert "-> name its authority with --certificate-authority, or skip verification with --ins" in done.output
    done = doctor("--server", serve({"/configz": Refusal(403)}))
    assert done.exit_code == 1
    assert (
        "-> to compare, allow the user to get /configz and /metrics there, or run this again as an administrator"
        in done.output
    )


def test_a_running_scheduler_that_does_not_run(doctor: Callable[..., Result]) -> None:
    """What was to be compared was not: that must not look like a pass."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{unused.getsockname()[1]}"
        done = doctor("--server", url)
    assert done.exit_code == 1
    assert f"PROBLEM nothing is compared: {url} does not report its configuration: cannot connect to " in done.output
    assert ": connection refused\n" in done.output
    assert "-> make sure that --server is the secure port of a running kube-scheduler" in done.output
    assert done.output.endswith(", 1 problem\n")


@pytest.mark.parametrize("code", [403, 500])
def test_checks_that_cannot_be_made(
    code: int, serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result], tmp_path: Path
) -> None:
    """Each is a problem, with what to do."""
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    refusal = Refusal(code)
    pages: dict[str, Any] = {
        "/version": {"gitVersion": "v1.37.0", "minor": "37"},
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": refusal,
        "/apis/apps/v1": refusal,
        f"{LEASES}/kube-scheduler": refusal,
        reviews: {"status": {"allowed": True}},
    }
    done = doctor("--kubeconfig", str(_kubeconfig(tmp_path, serve(pages))))
    assert done.exit_code == 1
    assert "PROBLEM the server's clock is unknown: not now\n        -> allow the user to create" in done.output
    assert "PROBLEM apps/v1: not now\n        -> allow the user to get /apis/apps/v1" in done.output
    assert (
        "PROBLEM the leader is unknown: the lease kube-system/kube-scheduler cannot be read: not now\n" in done.output
    )
    assert ", 3 problems\n" in done.output


def test_a_server_without_a_clock(
    serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result], tmp_path: Path
) -> None:
    """The user is reported, the time is not."""
    review = {"status": {"userInfo": {"username": "jane"}}}
    pages = {
        "/version": {"gitVersion": "v1.37.0", "minor": "37"},
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": review,
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {"status": {"allowed": True}},
    }
    done = doctor("--kubeconfig", str(_kubeconfig(tmp_path, serve(pages))))
    assert "note    the server does not report the time\n        -> compare the clocks manually\n" in done.output
    assert "clocks agree" not in done.output


@pytest.mark.parametrize("page", ["<html>Log in</html>", [1], {"kubeletconfig": {}}])
def test_a_server_that_is_something_else(
    page: Any, serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result]
) -> None:
    """Its answer at /configz is not that of a kube-scheduler."""
    done = doctor("--server", serve({"/configz": page, "/metrics": "x"}))
    assert done.exit_code == 1
    assert "does not report its configuration" in done.output
    assert "make sure that --server is the secure port of a running kube-scheduler" in done.output


@pytest.mark.parametrize("page", ["<html>Log in</html>", [1]])
def test_a_kubeconfig_that_names_no_api_server(
    page: Any, serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result], tmp_path: Path
) -> None:
    """A proxy that wants a login answers every path, and nothing that is expected."""
    done = doctor("--kubeconfig", str(_kubeconfig(tmp_path, serve({"/version": page}))))
    assert done.exit_code == 1
    assert "not a response of an API server" in done.output
    assert "make sure that the server runs and the kubeconfig is correct" in done.output


def test_credentials_that_are_not_accepted(
    doctor: Callable[..., Result], shared_plane: Running, tmp_path: Path
) -> None:
    """One problem says so, and nothing else is asked."""
    kubeconfig = tmp_path / "kubeconfig"
    written = shared_plane.control_plane.kubeconfig_path.read_text()
    kubeconfig.write_text(written.replace(TOKEN, "wrong"))
    done = doctor("--kubeconfig", str(kubeconfig))
    assert done.exit_code == 1
    assert (
        f"PROBLEM {shared_plane.control_plane.url} does not accept the user of the kubeconfig: Unauthorized\n"
        in done.output
    )
    assert "-> renew the token or the certificate in the kubeconfig" in done.output
    assert done.output.count("Unauthorized") == 1


@pytest.mark.parametrize("flag", ["--certificate-authority=ca.crt", "--insecure-skip-tls-verify"])
def test_flags_about_a_server_that_is_not_named(doctor: Callable[..., Result], flag: str) -> None:
    """They would change nothing."""
    done = doctor(flag)
    assert done.exit_code == 2
    assert f"Error: {flag.partition('=')[0]}: has no effect without --server" in done.output


def test_a_token_goes_over_tls_alone(shared_plane: Running, doctor: Callable[..., Result]) -> None:
    """An address without https:// is that of the secure port, too."""
    done = doctor("--server", shared_plane.control_plane.url.removeprefix("https://"), "--insecure-skip-tls-verify")
    assert "does not report its configuration: the server could not find the requested resource" in done.output


def test_checks_that_need_no_configuration_are_made_without_a_valid_one(
    doctor: Callable[..., Result], running_scheduler: Callable[..., str], tmp_path: Path
) -> None:
    """The differences, and whose lease would be looked at, are not those of the configuration that will run."""
    file = tmp_path / "config.yaml"
    file.write_text("kind: KubeSchedulerConfiguration\n")
    done = doctor("--server", running_scheduler({}), "--config", str(file))
    assert done.exit_code == 1
    assert "clocks agree" in done.output
    assert " permissions are granted" in done.output
    assert "they depend on the configuration" in done.output
    for words in ("the configurations are the same", "lease kube-system"):
        assert words not in done.output


def test_checks_after_one_that_fails_are_made(
    serve: Callable[[dict[str, Any]], str], doctor: Callable[..., Result], tmp_path: Path
) -> None:
    """Of the API server, and of the running scheduler even if the API server does not answer."""
    scheduler = serve({"/metrics": 'kubernetes_feature_enabled{name="GenericWorkload",stage="ALPHA"} 1\n'})
    gate = "the gate GenericWorkload is on there and off here"
    api = serve({"/version": Refusal(403), f"{LEASES}/kube-scheduler": {"spec": {"holderIdentity": "other"}}})
    done = doctor("--kubeconfig", str(_kubeconfig(tmp_path, api)), "--server", scheduler)
    for words in (f"PROBLEM {api}: not now", "apps/v1: the server has no", "other holds the lease", gate):
        assert words in done.output
    done = doctor("--kubeconfig", str(_kubeconfig(tmp_path, "http://127.0.0.1:9")), "--server", scheduler)
    assert done.output.count("http://127.0.0.1:9: ") == 1
    assert "the configurations are not compared" in done.output
    assert gate in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kubeconfig", "/no/such/file"), "/no/such/file: no such file"),
        (("--config", "/no/such/file"), "/no/such/file: cannot be read"),
    ],
)
def test_files_that_cannot_be_used(doctor: Callable[..., Result], arguments: tuple[str, ...], words: str) -> None:
    """They are problems like others."""
    done = doctor(*arguments)
    assert done.exit_code == 1
    assert words in done.output


def _kubeconfig(folder: Path, server: str) -> Path:
    cluster = [{"name": "c", "cluster": {"server": server}}]
    context = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
    content = {"clusters": cluster, "contexts": context, "users": [{"name": "u"}], "current-context": "c"}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("command", ["doctor", "capacity"])
def test_a_kubeconfig_with_a_file_that_is_not_there(command: str, tmp_path: Path) -> None:
    """The field and the file are reported."""
    path = _kubeconfig(tmp_path, "https://127.0.0.1:9")
    content = yaml.safe_load(path.read_text())
    content["clusters"][0]["cluster"]["certificate-authority"] = "/no/such/file"
    path.write_text(yaml.safe_dump(content))
    done = CliRunner().invoke(main, [command, "--kubeconfig", str(path)])
    assert done.exit_code == 1
    assert "certificate-authority: cannot read /no/such/file: No such file or directory\n" in done.output


def test_a_server_that_does_not_answer(tmp_path: Path, doctor: Callable[..., Result]) -> None:
    """The address is reported."""
    done = doctor("--kubeconfig", str(_kubeconfig(tmp_path, "http://127.0.0.1:9")))
    assert done.exit_code == 1
    assert "http://127.0.0.1:9" in done.output
