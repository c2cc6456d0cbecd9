"""What the screen of `kubestow explain` looks like: its width, its colours, and what a scheduler's record adds."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from kubestow.cli.explain.lines import shortened
from kubestow.cli.explain.process import print_text
from kubestow.cli.explain.screen import lines_of
from kubestow.cli.terminal import guarded_output, printable, style
from kubestow.insight.decisions.schema import (
    Binding,
    Candidate,
    Choice,
    Decision,
    Move,
    NodeResult,
    Nominated,
    Preemption,
    PreFilter,
    Queue,
    Rejected,
    Victim,
)
from kubestow.insight.explain.explanation import Explanation, explained
from support.cli.explain_files import Files, node, pod
from support.insight.rejections import SCENARIOS, Scenario, run_of


def rendered(node: str = "", wide: bool = False, **fields: Any) -> list[str]:
    """The lines about a decision that the scheduler recorded, or about one node in it."""
    usual: dict[str, Any] = {"outcome": "unschedulable", "chosen": None, "message": ""}
    decision = Decision(version=1, pod="shop/web", **(usual | fields))
    return printable(click.unstyle(lines_of(Explanation(decision, "scheduler"), node, wide=wide))).splitlines()


def test_no_line_is_longer_than_a_terminal(tmp_path: Path) -> None:
    """Whatever the names and however many nodes and reasons there are."""
    taint = {"key": "example.com/a-rather-long-name-of-a-taint", "value": "with-a-value", "effect": "NoSchedule"}
    names = [f"ip-10-0-{number}-117.eu-central-1.compute.internal" for number in range(30)]
    nodes = [node(name, str(number + 1), taints=[taint] * (number % 2)) for number, name in enumerate(names)]
    files = Files(tmp_path, *nodes)
    for cpu, options in (("1", ()), ("60", ()), ("60", ("--against", names[1]))):
        output = files.explain_pod(pod("a-pod-with-quite-a-long-name-as-deployments-make-them", cpu), *options).output
        assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize("why", ["pdbViolations", "highestPriority", "prioritySum", "victims", "started", "first"])
def test_no_line_of_a_record_is_longer_than_a_terminal(why: str) -> None:
    """Nor where many nodes were weighed, several plugins refused one, or a plugin's name is long."""
    quota = "QuotaAndReservationOfTheWholeCompany"
    candidates = tuple(Candidate(f"n{number}", 0, 0, 0, 1) for number in range(5_000))
    refused = Rejected(quota, "UnschedulableAndUnresolvable", ("no",), ("PodTopologySpread", "InterPodAffinity"))
    scored = NodeResult(total=7, plugins={quota: 7}, raw={quota: 1 << 50}, normalized={quota: 7})
    for lines in (
        rendered(preemption=Preemption(nominated="n0", why=why, candidates=candidates)),
        rendered("a", nodes={"a": NodeResult(rejected=refused)}, nodeCount=1, evaluated=1),
        rendered("a", nodes={"a": scored}, nodeCount=1, evaluated=1),
        rendered("a", nodeCount=1, preFilter=PreFilter(rejected=refused)),
    ):
        assert max(map(len, lines)) <= 80


def test_nodes_of_one_domain_are_compared_without_it() -> None:
    """With it, there would be room for one column, and nothing to compare."""
    names = [f"ip-10-0-{number}-117.eu-central-1.compute.internal" for number in range(3)]
    nodes = {name: NodeResult(total=100 - place, plugins={"Fit": 100 - place}) for place, name in enumerate(names)}
    lines = rendered(outcome="scheduled", chosen=names[0], nodes=nodes, weights={"Fit": 1}, nodeCount=3, evaluated=3)
    assert lines[2] == "Scores of the best 2 of 3 nodes, weighted"
    assert [line.split() for line in lines[3:]] == [
        ["ip-10-0-0-117..", "ip-10-0-1-117.."],
        ["Fit", "100", "99"],
        ["total", "100", "99"],
    ]


def test_names_that_differ_in_their_middle_keep_it(tmp_path: Path) -> None:
    """Three examples that look the same are none."""
    names = [f"worker-of-the-large-pool-{number}.zone-a.example.com" for number in range(4)]
    files = Files(tmp_path, *(node(name) for name in names))
    lines = [line.strip() for line in files.explain_pod(pod("web", "9")).output.splitlines()]
    assert [f"{names[0]},", f"{names[1]},", f"{names[2]} and 1 more"] == lines[5:8]


def test_long_names_lose_their_middle() -> None:
    """The end of a name distinguishes nodes."""
    assert shortened("ip-10-0-1-117.eu-central-1.compute.internal", 24) == "ip-10-0-1-117.e..nternal"
    assert shortened("node-1", 24) == "node-1"


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals(tmp_path: Path, environment: dict[str, str], coloured: bool) -> None:
    """And not for people who do not want them."""
    files = Files(tmp_path, node("a"))
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "kubestow", "explain", "-f", files.write("pod.json", pod("web"))]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | environment
    done = subprocess.run([*command, "--cluster", files.cluster], stdout=slave, env=environment, check=False)
    os.close(slave)
    output = os.read(master, 100_000).decode()
    os.close(master)
    assert done.returncode == 0
    assert ("\x1b[" in output) is coloured
    assert "\x1b[" not in files.explain_pod(pod("web")).output


@pytest.mark.parametrize(("no_color", "expected"), [("", "\x1b[2J\x1b[H\x1b[1ma\x1b[0m"), ("1", "\x1b[2J\x1b[Ha")])
def test_watching_clears_the_screen_and_colours_nothing_unasked(
    no_color: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clearing is no colour."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", no_color)
    with guarded_output():
        print_text(style("a", bold=True), clear=True)
    assert screen.getvalue() == expected


def test_a_record_shows_attempts_and_the_events_that_requeued_the_pod() -> None:
    """Times to the second."""
    moves = (Move("2026-01-01T10:00:00.123456Z", "active", "NodeAdd", "NodeResourcesFit"),)
    assert rendered(time="2026-01-01T10:00:01.5Z", queue=Queue(attempts=3, history=moves))[1:] == [
        "  Tried 3 times, last at 2026-01-01T10:00:01Z.",
        "    2026-01-01T10:00:00Z  active: NodeAdd, by NodeResourcesFit",
    ]


def test_a_record_shows_the_victims() -> None:
    """Once: the message of the pod has it, too."""
    preemption = Preemption(nominated="a", victims=(Victim("shop/low", 0),), candidates=(Candidate("a", 0, 0, 0, 1),))
    lines = rendered(message="0/1 nodes are available: 1 Insufficient cpu.", preemption=preemption)
    assert lines[1:] == [
        "  0/1 nodes are available: 1 Insufficient cpu.",
        "",
        "Preemption",
        "  evicts pods from a: shop/low",
    ]
    nothing = Preemption(message="preemption: not eligible.")
    assert rendered(message="0/1 nodes are available: 1 X. preemption: not eligible.", preemption=nothing)[1:] == [
        "  0/1 nodes are available: 1 X.",
        "",
        "Preemption",
        "  not eligible.",
    ]


def test_a_record_shows_what_binding_waits_for() -> None:
    """A pod that has a node need not be there yet."""
    binding = Binding("waiting", waitsFor=("Quota",))
    choice = Choice("nominated")
    lines = rendered(outcome="scheduled", chosen="a", binding=binding, choice=choice)
    assert lines == [
        "Pod shop/web is on its way to a.",
        "  It is its nominated node.",
        "  Binding: waiting for Quota",
    ]


def test_a_pod_that_is_refused_where_it_was_to_go_fits_somewhere() -> None:
    """Reserve, Permit or the binding refused it, not the nodes; what was said is said once."""
    known: dict[str, Any] = {"nodeCount": 3, "evaluated": 3, "feasible": 2, "rejectedBy": ("Quota",), "message": "no"}
    assert rendered(**known) == [
        "Pod shop/web is pending: it was refused by Quota on its node.",
        "  2 of 3 nodes evaluated were feasible.",
        "  no",
    ]
    assert rendered(**known, chosen="a", binding=Binding("failed", error="no")) == [
        "Pod shop/web is pending: it was refused by Quota on its way to a.",
        "  2 of 3 nodes evaluated were feasible.",
        "  no",
        "  Binding: failed",
    ]


@pytest.mark.parametrize(("state", "went"), [("binding", "is on its way"), ("bound", "went")])
def test_a_pod_that_is_not_bound_yet_is_on_its_way(state: str, went: str) -> None:
    """Its devices or volumes may have to be made ready first, for minutes."""
    assert rendered(outcome="scheduled", chosen="a", binding=Binding(state))[0] == f"Pod shop/web {went} to a."


def test_why_this_node() -> None:
    """How many would do of those that were looked at, and how many of these scored as well."""
    known: dict[str, Any] = {"outcome": "scheduled", "chosen": "a", "nodeCount": 5, "feasible": 3}
    for evaluated, choice, words in (
        (5, Choice("only", ("a",)), "It is the only feasible one of 5 nodes."),
        (4, Choice("only", ("a",)), "It is the only feasible one of 4 nodes evaluated."),
        (2, Choice("first", ("a",)), "It is the first that is feasible; nothing is scored."),
        (2, Choice("first", ("a",)), "not evaluated: one feasible node is enough where nothing is scored"),
        (5, Choice("score", ("a",)), "3 of 5 nodes are feasible, and it scores highest."),
        (4, Choice("score", ("a",)), "3 of 4 nodes evaluated are feasible, and it scores highest."),
        (
            5,
            Choice("random", ("a", "b")),
            "3 of 5 nodes are feasible, and 2 of them score highest: it was chosen at random.",
        ),
        (
            5,
            Choice("random", ("a", "b", "c")),
            "3 of 5 nodes are feasible, and all of them score the same: it was chosen at random.",
        ),
    ):
        assert words in " ".join(map(str.strip, rendered(**known, evaluated=evaluated, choice=choice)))


def test_nodes_that_were_not_looked_at_are_counted() -> None:
    """Because enough had been found, the attempt failed, PreFilter had left them out, or room was made elsewhere."""
    rejected = NodeResult(rejected=Rejected("P", "Unschedulable", ("no",)))
    counts: dict[str, Any] = {"nodeCount": 10, "evaluated": 1, "nodes": {"a": rejected}}
    assert rendered(**counts)[-1] == "       9  not evaluated: enough feasible nodes were found"
    assert rendered(**counts, outcome="error")[-1] == "       9  not evaluated: the attempt failed"
    there = rendered(nodeCount=10, evaluated=1, outcome="scheduled", chosen="a", choice=Choice("nominated"))
    assert there[-1] == "       9  not evaluated: its nominated node was evaluated first and is feasible"
    narrowed = PreFilter(narrowedTo=("a",), narrowedBy=("NodeAffinity",))
    assert (
        rendered(**counts, preFilter=narrowed)[-1] == "       9  NodeAffinity: excluded before any node was evaluated"
    )


def test_a_node_that_keeps_room_for_others_says_for_whom() -> None:
    """It is too small, although what its pods leave would be enough."""
    nodes = {name: NodeResult(rejected=Rejected("Fit", "Unschedulable", ("Insufficient cpu",))) for name in ("a", "b")}
    nominated = tuple(Nominated(f"shop/vip-{number}", "a", 9) for number in range(4))
    lines = rendered(nodes=nodes, nodeCount=2, evaluated=2, nominated=nominated)
    assert lines[-2:] == [
        "  resources are reserved for nominated pods: shop/vip-0 on a, shop/vip-1 on a,",
        "  shop/vip-2 on a and 1 more",
    ]
    for name, said in (("a", True), ("b", False)):
        lines = rendered(name, nodes=nodes, nodeCount=2, evaluated=2, nominated=nominated[:1])
        assert ("  resources are reserved for nominated pods: shop/vip-0" in lines) is said


def test_a_wide_screen_leaves_nothing_out() -> None:
    """How many nodes were not looked at, for whom room is kept, and who must go."""
    lines = rendered(
        wide=True,
        nodes={"a": NodeResult(rejected=Rejected("Fit", "Unschedulable", ("Insufficient cpu",)))},
        nodeCount=3,
        evaluated=1,
        nominated=(Nominated("shop/vip", "a", 9),),
        preFilter=PreFilter(narrowedTo=("a",), narrowedBy=("NodeAffinity",)),
        preemption=Preemption(nominated="a", victims=(Victim("shop/low", 0),)),
    )
    assert lines[2:] == [
        "NODE  PLUGIN  CODE           REASONS",
        "a     Fit     Unschedulable  Insufficient cpu",
        "       2  NodeAffinity: excluded before any node was evaluated",
        "  resources are reserved for nominated pods: shop/vip on a",
        "",
        "Preemption",
        "  evicts pods from a: shop/low",
    ]


def test_nodes_without_details_are_reported() -> None:
    """Evaluated nodes are not shown as unevaluated where there was no room for their details."""
    known: dict[str, Any] = {"nodes": {}, "nodeCount": 3, "evaluated": 3, "nodesDropped": "there was no room"}
    assert rendered(**known)[2:] == ["Why not", "  there was no room"]
    assert rendered(wide=True, **known)[2:] == ["there was no room"]
    assert rendered("a", **known)[2:] == ["Node a", "  there was no room."]


def test_the_plugin_that_rejects_a_pod_as_a_whole_is_shown() -> None:
    """What PostFilter says then is of no use to anybody, unless room could be made."""
    for code, preemption in (
        ("UnschedulableAndUnresolvable", []),
        ("Unschedulable", ["", "Preemption", "  not found"]),
    ):
        lines = rendered(
            nodeCount=5,
            message='0/5 nodes are available: claim "data" not found. not found',
            preFilter=PreFilter(rejected=Rejected("VolumeRestrictions", code, ('claim "data" not found',))),
            preemption=Preemption(message="not found"),
        )
        assert lines[1:] == [
            '  0/5 nodes are available: claim "data" not found.',
            "",
            "Why not",
            '       5  VolumeRestrictions: claim "data" not found',
            "          on all nodes: no node was evaluated",
            *preemption,
        ]


def test_nodes_refused_in_the_same_words_are_one_group() -> None:
    """Only -o wide shows whether preemption might help there."""
    codes = {"a": "Unschedulable", "b": "UnschedulableAndUnresolvable"}
    nodes = {name: NodeResult(rejected=Rejected("P", code, ("full",))) for name, code in codes.items()}
    assert rendered(nodeCount=2, evaluated=2, nodes=nodes)[-3:] == ["Why not", "       2  P: full", "          a, b"]


def test_a_failure_is_called_one() -> None:
    """It is not the pod that is to blame."""
    assert rendered(outcome="error", message="plugin X failed") == [
        "Scheduling pod shop/web failed.",
        "  plugin X failed",
    ]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_screen_fits_a_terminal(scenario: Scenario) -> None:
    """It has at most 24 lines of 80 columns, and never only says that nothing was found."""
    lines = printable(click.unstyle(lines_of(explained(run_of(scenario))))).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "Would fit if" in lines
