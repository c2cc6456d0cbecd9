"""Errors and notes about scenarios that are invalid or have no effect: with file, line and field."""

import gzip
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kubestow.api.files import ObjectsError
from kubestow.cli import main
from kubestow.simulator import running
from kubestow.simulator.scenario.building import Prepared, build
from kubestow.simulator.scenario.reading import read
from support.simulator.objects import HEAD, POD, Write

DEPLOYMENT = """
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      selector: {matchLabels: {app: web}}
      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
"""


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("duratoin: 1h", r"s\.yaml: line 4: spec\.duratoin: unknown field"),
        ("duration: -5s", r"s\.yaml: line 4: spec\.duration: -5s is negative"),
        ("duration: 1e17", r"s\.yaml: line 4: spec\.duration: .* is more than 200 years"),
        ("duration: soon", r's\.yaml: line 4: spec\.duration: "soon" is not a duration'),
        ("sample: 0ms", r"s\.yaml: line 4: spec\.sample: must be greater than 0"),
        ("seed: x", r"s\.yaml: line 4: spec\.seed: expected `int`, got `str`"),
        ("seed: -1", r"s\.yaml: line 4: spec\.seed: expected `int` >= 0"),
        ("duration: 0", r"s\.yaml: line 4: spec\.duration: must be greater than 0"),
        ("nodes:\n- count: 2\n  name: small", r"s\.yaml: line 6: spec\.nodes\[0\]\.name: needs \{\} for the number"),
        ("nodes:\n- cpu: many", r"s\.yaml: line 5: spec\.nodes\[0\]\.cpu: "),
        ("nodes:\n- memory: -1Gi", r"s\.yaml: line 5: spec\.nodes\[0\]\.memory: must not be negative"),
        ("events:\n- at: 5s", r"s\.yaml: line 5: spec\.events\[0\]: needs one of fail, drain"),
        ("events:\n- at: 5s\n  fail: {}", r"line 6: spec\.events\[0\]\.fail: needs one of names, labels and count"),
        ("arrivals:\n- name: a\n  times: [1]", r"line 5: spec\.arrivals\[0\]: needs either pod or object"),
        (f"arrivals:\n- name: a\n  {POD}\n  times: [1, -2]", r"line 7: .*\.times\[1\]: -2 is negative"),
        (f"arrivals:\n- name: a\n  {POD}\n  poisson: {{every: 1}}", r"needs until or count"),
        ("nodeGroups:\n- {name: g, template: {}, min: 5, max: 2}", r"nodeGroups\[0\]\.min: must be between"),
        ("nodeGroups:\n- name: g\n  template: {}\n  max: -4", r"line 7: .*nodeGroups\[0\]\.max: expected `int` >= 0"),
        ("nodeGroups:\n- {name: g_g, template: {}}", r"nodeGroups\[0\]\.name: 'g_g': a lowercase RFC 1123 subdomain"),
        ("nodeGroups:\n- {name: g, template: {count: 2}}", r"nodeGroups\[0\]\.template\.count: does not apply here"),
        ("events:\n- {at: 1, fail: {count: 0}}", r"spec\.events\[0\]\.fail\.count: expected `int` >= 1"),
        ("events:\n- {at: 1, fail: {names: []}}", r"spec\.events\[0\]\.fail\.names: expected `array` of length >= 1"),
        ("events:\n- {at: 1, scale: {kind: Job, name: j, replicas: 2}}", r"scale\.kind: 'Job' has no replicas"),
        ("events:\n- {at: 1, delete: {kind: pod, name: p}}", r"events\[0\]\.delete\.kind: there is no kind 'pod'"),
        ("events:\n- {at: 1, apply: [{apiVersion: v1, kind: Pod}]}", r"apply\[0\]\.metadata: needs a name"),
        (f"arrivals:\n- {{name: a, times: [1], until: 2, begin: 3, {POD}}}", r"\.until: must be later than begin"),
        (f"arrivals:\n- {{name: a, times: [1], run: {{uniform: {{low: 2, high: 1}}}}, {POD}}}", r"\.low: must not be"),
        ("include: [nowhere.yaml]", r"(?s)line 4: spec\.include\[0\]: .*nowhere\.yaml: cannot be read"),
    ],
)  # fmt: skip
def test_invalid_fields_are_reported_with_file_line_and_field(write: Write, spec: str, problem: str) -> None:
    """Before the run."""
    with pytest.raises(ObjectsError, match=problem):
        read([write(spec)])


def test_a_plain_list_is_rejected(write: Write) -> None:
    """As jq prints the items of kubectl's output."""
    with pytest.raises(ObjectsError, match=r"s\.json.*: is a list; write a List"):
        read([write("", "s.json", head='[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}]')])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", r"s\.yaml: nothing to simulate: no Scenario and no objects$"),
        (b"apiVersion: x/v1\nkind: Pdo\nmetadata: {name: p}", r"s\.yaml: .* but of unsupported kinds: Pdo"),
        (b"apiVersion: kubestow.dev/v1\nkind: Scenario", r"s\.yaml: line 1: object missing required field `spec`"),
        (gzip.compress(b'{"kubestow":"recording","version":1}\n', mtime=0), r"s\.yaml: is a recording"),
        (b"\xff", r"s\.yaml: is not UTF-8 text"),
    ],
)  # fmt: skip
def test_a_file_without_a_scenario_is_rejected(tmp_path: Path, text: bytes, problem: str) -> None:
    """By file name."""
    (tmp_path / "s.yaml").write_bytes(text)
    with pytest.raises(ObjectsError, match=problem):
        read([str(tmp_path / "s.yaml")])


def test_another_version_is_rejected(write: Write) -> None:
    """The message contains the supported version."""
    with pytest.raises(ObjectsError, match=r"line 1: apiVersion: is 'kubestow.dev/v9'; this program reads"):
        read([write("seed: 1", head=HEAD.replace("/v1", "/v9"))])


def test_a_truncated_file_is_rejected(write: Write) -> None:
    """As is everything that is not YAML."""
    with pytest.raises(ObjectsError, match=r"s\.yaml: not valid YAML: line "):
        read([write("nodes: [{count: 1")])


def test_a_rejected_object_is_reported_with_its_place(tmp_path: Path) -> None:
    """File, line of the document, object and field."""
    path = tmp_path / "o.yaml"
    path.write_text("# objects\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 7}\n")
    with pytest.raises(ObjectsError, match=r"o\.yaml: line 3: Pod p: .*containers"):
        build(read([str(path)]))


def test_nothing_is_written_for_an_invalid_file(tmp_path: Path) -> None:
    """One line for each problem, and no folder."""
    (tmp_path / "s.yaml").write_text(HEAD + "  seed: x\n")
    ran = CliRunner().invoke(main, ["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")])
    assert ran.exit_code == 1
    assert ran.output.startswith("Error: ")
    assert not (tmp_path / "out").exists()


def test_nothing_is_left_of_a_failed_run(write: Write, tmp_path: Path) -> None:
    """An object that an event needs may be deleted by then, which is reported with the event's field."""
    spec = """nodes: [{count: 1, name: gone}]
duration: 5m
events:
- {at: 1m, remove: {names: [gone]}}
- at: 2m
  drain: {names: [gone]}
"""
    ran = CliRunner().invoke(main, ["simulate", write(spec), "--out", str(tmp_path / "new" / "out")])
    assert ran.exit_code == 1
    assert "s.yaml: line 9: spec.events[1].drain.names[0]: there is no Node gone at 2 min" in ran.output
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ("- {at: 1m, scale: {kind: Deployment, name: wob, replicas: 3}}",
         r"line 6: spec\.events\[0\]\.scale\.name: there is no Deployment default/wob at 60 s"),
        ("- {at: 1m, delete: {kind: Deployment, name: web, namespace: other}}",
         r"line 6: spec\.events\[0\]\.delete\.name: there is no Deployment other/web at 60 s"),
        ("- at: 1m\n  fail: {names: [n0, n9]}", r"line 7: spec\.events\[0\]\.fail\.names\[1\]: there is no Node n9"),
        (f"- {{at: 1m, scale: {{kind: Deployment, name: web, replicas: 3}}}}\n- at: 2m\n  apply:{DEPLOYMENT}",
         r"line 6: spec\.events\[0\]\.scale\.name: there is no Deployment default/web at 60 s"),
    ],
)  # fmt: skip
def test_events_on_missing_objects_are_reported_before_the_run(write: Write, events: str, problem: str) -> None:
    """With the field that names it; an object that another event creates later counts as missing."""
    with pytest.raises(ObjectsError, match=problem):
        Prepared(read([write(f"nodes: [{{name: 'n{{}}'}}]\nevents:\n{events}")]))


def test_events_may_name_objects_that_the_scenario_creates(write: Write) -> None:
    """Objects that events apply, arrivals, and nodes of groups may exist by then."""
    spec = f"""duration: 10m
nodeGroups: [{{name: g, template: {{cpu: 2}}, min: 1}}]
arrivals: [{{name: late, times: [1], object: {{apiVersion: v1, kind: Node}}}}]
events:
- at: 1m
  apply:{DEPLOYMENT}
- {{at: 2m, scale: {{kind: Deployment, name: web, replicas: 3}}}}
- {{at: 3m, cordon: {{names: [g-0, late-0]}}}}
"""
    assert running.run(Prepared(read([write(spec)]))).results["pods"]["bound"] == 3


@pytest.mark.parametrize(
    ("arrival", "problem"),
    [
        ("pod: {spec: {containers: [{name: c, imagee: i}]}}",
         r"line 6: spec\.arrivals\[0\]\.pod\.spec\.containers\[0\]\.imagee: unknown field"),
        ("pod:\n    spec:\n      containers:\n      - {name: c, image: i, resources: {requests: {cpu: '-2'}}}",
         r"line 9: spec\.arrivals\[0\]\.pod\.spec\.containers\[0\]\.resources\.requests\[cpu\]: Invalid value: \"-2"),
        ("pod: {metadata: {labels: {a: 1}}}", r"\.pod\.metadata\.labels\.a: must be a string, not 1"),
        ("pod: {metadata: {namespace: b}}", r"\.pod\.metadata\.namespace: is 'b', but the arrival's is 'default'"),
        ("pod: {spec: {priorityClassName: x}}", r'\[0\]\.pod: pods "batch" is forbidden: no PriorityClass with name x'),
        ("pod: {spec: 7}", r"line 6: spec\.arrivals\[0\]\.pod\.spec: expected `object`"),
        ("object: {apiVersion: v1, kind: Podd}", r"\.object\.kind: 'Podd' \('v1'\) is not .*; did you mean Pod\?"),
        (f"{POD}\n  namespace: No_Name", r"line 7: spec\.arrivals\[0\]\.namespace: 'No_Name': a lowercase RFC"),
    ],
)  # fmt: skip
def test_invalid_arrivals_are_reported_with_their_field(write: Write, arrival: str, problem: str) -> None:
    """Before the run."""
    with pytest.raises(ObjectsError, match=problem):
        build(read([write(f"arrivals:\n- name: batch\n  {arrival}\n  times: [1]")]))


def test_rejections_during_the_run_are_reported_with_their_entry(write: Write) -> None:
    """An object that an event applies, and a pod whose name is in use."""
    spec = f"nodes: [{{}}]\narrivals:\n- {{name: a, times: [3], {POD}}}\nevents:\n- at: 2\n  apply:\n  - "
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, imag: i}]}}"
    with pytest.raises(
        ObjectsError, match=r"line 10: spec\.events\[0\]\.apply\[0\]\.spec\.containers\[0\]\.imag: unknown field"
    ):
        running.run(Prepared(read([write(spec + pod)])))
    with pytest.raises(ObjectsError, match=r'line 6: spec\.arrivals\[0\]\.pod: pods "a-0" already exists'):
        running.run(Prepared(read([write(spec + pod.replace("imag:", "image:").replace("b}", "a-0}"))])))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("at,cpu\n1,-2\n", r"t\.csv: line 2: cpu: must not be negative"),
        ("at,memory\n1,1Gi\n2,lots\n", r"t\.csv: line 3: memory: "),
        ("name,at\na,1\na,2\n", r"t\.csv: line 3: name: 'a' is already used in line 2"),
        ("name,at\nA_b,1\n", r"t\.csv: line 2: name: 'A_b': a lowercase RFC 1123 subdomain"),
        ("at,run\n,5\n", r"t\.csv: line 2: at: \"\" is not a duration"),
        ("at,run\n5,inf\n", r"t\.csv: line 2: run: inf is more than 200 years"),
        ("at\nnan\n", r"t\.csv: line 2: at: nan is more than 200 years"),
        ("when\n5\n", r"t\.csv: needs rows with a column `at`"),
    ],
)
def test_invalid_traces_are_reported_with_their_line(write: Write, tmp_path: Path, rows: str, problem: str) -> None:
    """And with the field of the Scenario that names the file."""
    (tmp_path / "t.csv").write_text(rows)
    with pytest.raises(ObjectsError, match=r"line 7: spec\.arrivals\[0\]\.trace: .*" + problem):
        read([write(f"arrivals:\n- name: a\n  {POD}\n  trace: t.csv")])


@pytest.mark.parametrize(
    ("version", "kind", "suggestion"),
    [
        ("apps/v1", "Deploymnt", "Deployment"),
        ("apps/v1", "deployment", "Deployment"),
        ("v1", "Pdo", "Pod"),
        ("batch/v1", "Jobs", "Job"),
        ("v1", "ComponentStatus", ""),
        ("certificates.k8s.io/v1", "PodCertificateRequest", ""),
        ("apps/v1beta1", "Deployment", ""),
        ("resource.k8s.io/v1beta2", "ResourceClaim", ""),
        ("argoproj.io/v1alpha1", "Deploymnt", ""),
    ],
)
def test_a_misspelt_kind_is_rejected(write: Write, version: str, kind: str, suggestion: str) -> None:
    """If that API version has a similar kind; other kinds may be custom resources, and are skipped."""
    path = write(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}", head="# objects\n---\n")
    if suggestion:
        words = rf"s\.yaml: line 3: there is no kind '{kind}' in {version}; did you mean {suggestion}\?$"
        with pytest.raises(ObjectsError, match=words):
            read([path, write("nodes: [{count: 1}]", "other.yaml")])
    else:
        assert read([path, write("nodes: [{count: 1}]", "other.yaml")]).skipped == {f"{kind} ({version})": 1}


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (HEAD.replace("Scenario", "Scenaro"), r"line 2: kind: unknown kind 'Scenaro'; kubestow.dev/v1 has only"),
        (HEAD.replace("kubestow.dev/v1", "kubestow/v1"), r"line 1: apiVersion: is 'kubestow/v1'; this program reads"),
    ],
)  # fmt: skip
def test_an_unknown_kind_of_kubestow_is_rejected(write: Write, head: str, problem: str) -> None:
    """It is not skipped like custom resources."""
    with pytest.raises(ObjectsError, match=problem):
        read([write("seed: 1", head=head)])


def test_events_and_arrivals_without_effect_are_noted(write: Write, tmp_path: Path) -> None:
    """On the terminal, in the results and in the report; in a run without duration everything happens."""
    (tmp_path / "t.csv").write_text("at,memroy\n1,1Gi\n")
    spec = f"""duration: 10m
nodes: [{{count: 2}}]
arrivals:
- {{name: late, times: [11m], {POD}}}
- {{name: traced, trace: t.csv, {POD}}}
events:
- at: 2m
  fail: {{labels: {{zone: x}}}}
- {{at: 3m, cordon: {{count: 3}}}}
- {{at: 10m, uncordon: {{labels: {{}}}}}}
- {{at: 20m, drain: {{names: [node-0]}}}}
"""
    out = tmp_path / "out"
    ran = CliRunner().invoke(main, ["simulate", write(spec), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    wanted = [
        "line 8: spec.arrivals[1].trace: t.csv: column 'memroy' is not used",
        "line 14: spec.events[3].at: does not happen: it is due at 20 min, but the run ends at 10 min",
        "line 7: spec.arrivals[0]: does not happen: it is due at 11 min, but the run ends at 10 min",
        "line 11: spec.events[0].fail.labels: no node had these labels at 2 min, so nothing happened",
        "line 12: spec.events[1].cordon.count: there were only 2 nodes at 3 min",
    ]
    assert [line.partition("s.yaml: ")[2] for line in ran.output.splitlines() if line.startswith("Note: ")] == wanted
    notes = msgspec.json.decode((out / "results.json").read_bytes())["notes"]
    assert [note.partition("s.yaml: ")[2] for note in notes] == wanted
    assert (out / "report.html").read_text().count("<p>Note: ") == len(wanted)
    done = running.run(Prepared(read([write(spec.replace("duration: 10m", ""))])))
    assert not any("does not happen" in note for note in done.results["notes"])


def test_pods_rejected_by_a_quota_are_noted(write: Write, tmp_path: Path) -> None:
    """Once; the other pods arrive."""
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: 2}}\n"
    (tmp_path / "q.yaml").write_text(quota)
    spec = f"duration: 1m\ninclude: [q.yaml]\nnodes: [{{}}]\narrivals:\n- {{name: a, times: [1, 2, 3, 4], {POD}}}"
    results = running.run(Prepared(read([write(spec)]))).results
    (note,) = results["notes"]
    assert 's.yaml: line 8: spec.arrivals[0].pod: from 3 s on, pods "a-2" is forbidden: exceeded quota: q' in note
    assert results["pods"]["bound"] == 2


def test_a_cluster_without_nodes_is_noted(write: Write) -> None:
    """Otherwise the summary would be that of an idle cluster."""
    notes = [running.run(Prepared(read([write(spec)]))).results["notes"] for spec in ("seed: 1", "nodes: [{}]")]
    assert notes == [["The cluster never had a node."], []]


def test_without_a_duration_all_arrivals_happen(write: Write, tmp_path: Path) -> None:
    """Also arrivals that are rare, shifted, or in a trace that is not sorted."""
    (tmp_path / "t.csv").write_text("at\n5h\n1m\n")
    for arrival in ("poisson: {every: 2h}, count: 3", "times: [1s], begin: 3h", "trace: t.csv"):
        done = running.run(Prepared(read([write(f"nodes: [{{}}]\narrivals: [{{name: a, {arrival}, {POD}}}]")])))
        assert done.results["pods"]["bound"] == {"p": 3, "t": 1}[arrival[0]] + ("trace" in arrival)
