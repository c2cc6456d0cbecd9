"""Changes of configuration and plugins while the scheduler runs."""

import gc
import sys
from pathlib import Path

import pytest

from kubestow.scheduler.framework.profile import Profile
from kubestow.telemetry.log_messages import Message
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.reloads import MINE, Reloadable, plugin
from support.scenarios.start import Start

TWO = """profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Mine}]}}
- schedulerName: other
  plugins: {multiPoint: {enabled: [{name: Mine}]}}
"""
RAISES = "def pre_filter(self, pod):\n    raise LookupError('lost')"


@pytest.fixture
def reloadable(tmp_path: Path, start: Start) -> Reloadable:
    """Return a scheduler with one plugin, and nodes for its versions v1 and v2."""
    made = Reloadable(tmp_path, start)
    for version in ("v1", "v2"):
        made.harness.cluster.add(make_node(version, cpu="64"))
    return made


# Successful reloads


def test_a_changed_plugin_decides_from_now_on(reloadable: Reloadable) -> None:
    """The reload is reported by an event and metrics."""
    cluster = reloadable.harness.cluster
    cluster.add(make_pod("before"))
    reloadable.harness.run_until_idle()
    assert reloadable.reload(code=plugin(version="v2"))
    cluster.add(make_pod("after"))
    reloadable.harness.run_until_idle()
    assert (cluster.node_of("before"), cluster.node_of("after")) == ("v1", "v2")
    assert reloadable.events == [
        ("Normal", "Reloaded", "reloaded its configuration; changed: profile default-scheduler")
    ]
    assert (reloadable.count("success"), reloadable.metrics.successful.read()[()]) == (1, 1)


def test_rejected_pods_of_a_changed_profile_are_retried(tmp_path: Path, start: Start) -> None:
    """Those of the other profile are not."""
    made = Reloadable(tmp_path, start, TWO, plugin("def requeue_on(self): return []"))
    cluster = made.harness.cluster
    cluster.add(make_node("v2"))
    cluster.add(make_pod("mine", scheduler="other"))
    cluster.add(make_pod("not-mine"))
    made.harness.run_until_idle()
    assert made.harness.place_of("mine") == "unschedulable"
    attempts = len(made.harness.attempts.decisions)
    head, _, _ = TWO.rpartition("  plugins:")
    assert made.reload(configuration=head)
    made.harness.run_until_idle()
    assert cluster.node_of("mine") == "v2"
    assert made.harness.place_of("not-mine") == "unschedulable"
    assert len(made.harness.attempts.decisions) == attempts + 1


def test_an_unchanged_profile_keeps_its_plugins(tmp_path: Path, start: Start) -> None:
    """They keep their state; a file with the same contents in another form is unchanged."""
    made = Reloadable(tmp_path, start, TWO)
    plugins = made.mine(), made.mine("other")
    assert made.reload(configuration=TWO + "# a comment\n")
    assert (made.mine(), made.mine("other")) == plugins
    assert made.reload(configuration=TWO.replace("other\n", "other\n  percentageOfNodesToScore: 50\n"))
    assert made.mine() is plugins[0]
    assert made.mine("other") is not plugins[1]


def test_pre_enqueue_runs_again_after_a_reload(reloadable: Reloadable) -> None:
    """A removed gate activates pods; a new one gates pods that back off."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    head = "from kubestow.scheduler.framework.results import unschedulable\n"
    closed = head + plugin(
        "def pre_enqueue(self, pod): return unschedulable('closed')\ndef requeue_on(self): return []"
    )
    assert reloadable.reload(code=closed)
    cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.place_of("p") == "gated"
    assert reloadable.reload(code=plugin("def permit(self, state, pod, node): return 1 // 0"))
    harness.run_for(0.1)
    assert harness.place_of("p") == "errorBackoff"
    assert reloadable.reload(code=closed)
    assert harness.place_of("p") == "gated"


def test_pods_finish_with_the_plugins_they_began_with(reloadable: Reloadable) -> None:
    """A pod that waits for permission is bound by the version that made it wait."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    waits = (
        "def permit(self, state, pod, node):\n"
        "    from kubestow.plugin import Wait\n"
        "    return Wait(60)\n"
        "done = []\n"
        "def pre_bind_needed(self, state, pod, node): return True\n"
        "async def pre_bind(self, state, pod, node): self.done.append(pod.name)\n"
    )
    assert reloadable.reload(code=plugin(waits))
    first = reloadable.mine()
    cluster.add(make_pod("old"))
    harness.run_until(lambda: harness.place_of("old") == "waiting")
    assert reloadable.reload(code=plugin(waits, version="v2"))
    cluster.add(make_pod("new"))
    harness.run_until(lambda: harness.place_of("new") == "waiting")
    for waiting in harness.core.waiting_pods:
        waiting.allow("Mine")
    harness.run_until_idle()
    assert (cluster.node_of("old"), cluster.node_of("new")) == ("v1", "v2")
    assert (first.done, reloadable.mine().done) == (["old"], ["new"])


def test_an_attempt_that_fails_during_a_reload_is_repeated_with_the_new_plugins(reloadable: Reloadable) -> None:
    """No event is necessary."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    waits = "def permit(self, state, pod, node):\n    from kubestow.plugin import Wait\n    return Wait(60)"
    assert reloadable.reload(code=plugin(waits + "\ndef requeue_on(self): return []"))
    cluster.add(make_pod("p"))
    harness.run_until(lambda: harness.place_of("p") == "waiting")
    assert reloadable.reload(code=plugin(version="v2"))
    harness.run_until_idle()
    assert cluster.node_of("p") == "v2"


def test_scheduler_names_are_added_and_removed(reloadable: Reloadable) -> None:
    """Pods of a new name are queued, those of a removed one are ignored, and queued again when it is added again."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    cluster.add(make_pod("theirs", scheduler="other"))
    cluster.add(make_pod("large", cpu="1000"))
    harness.run_until_idle()
    assert reloadable.reload(configuration="profiles:\n- schedulerName: other\n")
    harness.run_until_idle()
    assert cluster.node_of("theirs")
    assert harness.places() == {}
    cluster.add(make_node("v1-large", cpu="1000"))
    harness.run_until_idle()
    assert not cluster.node_of("large")
    assert reloadable.reload(configuration=MINE)
    harness.run_until_idle()
    assert cluster.node_of("large") == "v1-large"


def test_a_pod_of_a_removed_name_may_be_deleted_while_it_waits(reloadable: Reloadable) -> None:
    """Its capacity is free again."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    waits = "def permit(self, state, pod, node):\n    from kubestow.plugin import Wait\n    return Wait(600)"
    assert reloadable.reload(code=plugin(waits))
    cluster.add(make_pod("p"))
    harness.run_until(lambda: harness.place_of("p") == "waiting")
    assert reloadable.reload(configuration="profiles:\n- schedulerName: other\n")
    cluster.delete(cluster.pod("p"))
    harness.run_for(1.0)
    assert harness.core.cluster.pod_count == 0
    assert len(harness.core.scheduler.binder) == 0


def test_other_backoffs_and_percentage(reloadable: Reloadable) -> None:
    """They apply to pods that are backing off, too."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    slow = "podInitialBackoffSeconds: 600\npodMaxBackoffSeconds: 600\n" + MINE
    assert reloadable.reload(configuration=slow)
    cluster.add(make_pod("large", cpu="1000"))
    harness.run_for(1.0)
    cluster.add(make_node("v1-large", cpu="1000"))
    assert reloadable.reload(configuration="percentageOfNodesToScore: 100\n" + MINE)
    harness.run_for(3.0)
    assert cluster.node_of("large") == "v1-large"


def test_changes_are_reported_by_field(reloadable: Reloadable, caplog: pytest.LogCaptureFixture) -> None:
    """They are logged; if no profile has changed, they are also in the event."""
    caplog.set_level("INFO", "kubestow")
    assert reloadable.reload(configuration="podMaxBackoffSeconds: 20\n" + MINE)
    assert reloadable.reload(configuration="podMaxBackoffSeconds: 20\n" + MINE.replace("Mine", "Mine, weight: 3"))
    assert reloadable.reload()
    messages: list[Message] = [record.msg for record in caplog.records if isinstance(record.msg, Message)]
    fields = [message.values["fields"] for message in messages if message.text == "Configuration reloaded"]
    weight = "profiles[default-scheduler].plugins.multiPoint.enabled[Mine].weight: 0 -> 3"
    assert fields == [["podMaxBackoffSeconds: 10 -> 20"], [weight], []]
    assert [event.note.partition("; ")[2] for event in reloadable.events] == [
        "changed: podMaxBackoffSeconds: 10 -> 20",
        "changed: profile default-scheduler",
        "nothing has changed",
    ]


# Failed reloads


@pytest.mark.parametrize(
    ("configuration", "code", "problem"),
    [
        ("leaderElection: {leaseDuration: 20s}\n" + MINE, None, "leaderElection.leaseDuration cannot change while"),
        ("clientConnection: {qps: 7}\n" + MINE, None, "clientConnection.qps cannot change while running: restart"),
        ("parallelism: 3\n" + MINE, None, "parallelism cannot change while running"),
        (
            "extenders: [{urlPrefix: 'http://x', filterVerb: f}]\n" + MINE,
            None,
            "extenders: these extenders need complete Nodes, which are not stored: restart the scheduler",
        ),
        ("profiles:\n- plugins: {multiPoint: {ena", None, "line"),
        (MINE.replace("Mine", "Mien"), None, "Mien"),
        (MINE + "  pluginConfig:\n  - name: NodeResourcesFit\n    args: {nonsense: 1}\n", None, "nonsense"),
        (None, "class Mine:\n  def filter(self, state, pod node):\n", "mine.py: line 2"),
        (None, "raise OSError('no licence')", "no licence"),
        (None, "x = 1", "defines no plugin"),
        (None, plugin("def score(self, wrong): return 1"), "score must take"),
        (None, plugin().replace("self.handle = handle", "handle.nothing"), "initializing plugin Mine"),
        (None, plugin(RAISES), 'tried on pod default/running: running PreFilter plugin "Mine": '),
        (None, plugin("def score(self, state, pod, node): return 1000"), "tried on pod"),
        (None, plugin("def pre_enqueue(self, pod): return 1 // 0"), "tried on pod"),
    ],
)  # fmt: skip
def test_problems_are_reported_and_nothing_changes(
    reloadable: Reloadable, configuration: str | None, code: str | None, problem: str
) -> None:
    """The previous plugins stay in use."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    cluster.add(make_node("v1-more"))
    cluster.add(make_pod("running"))
    harness.run_until_idle()
    before, modules = reloadable.mine(), set(sys.modules)
    assert not reloadable.reload(configuration=configuration, code=code)
    assert reloadable.mine() is before
    (event,) = reloadable.events
    assert event[:2] == ("Warning", "ReloadFailed")
    assert problem in event.note
    assert (reloadable.count("failure"), reloadable.metrics.successful.read()[()]) == (1, 0)
    assert {name for name in set(sys.modules) - modules if name.startswith("kubestow_plugin_")} == set()
    cluster.add(make_pod("later"))
    harness.run_until_idle()
    assert cluster.node_of("later").startswith("v1")
    assert reloadable.reload(configuration=MINE, code=plugin(version="v2"))
    assert reloadable.metrics.successful.read()[()] == 1


def test_a_missing_file(reloadable: Reloadable) -> None:
    """Its name and the error are reported."""
    reloadable.plugin.unlink()
    assert not reloadable.reload()
    assert "mine.py: cannot be read: No such file" in reloadable.events[0].note


def test_loading_that_never_ends(reloadable: Reloadable) -> None:
    """It is aborted, and the next reload runs."""
    reloadable.hangs = True
    assert not reloadable.reload()
    assert "loading takes longer than 60 seconds" in reloadable.events[0].note
    reloadable.hangs = False
    assert reloadable.reload()


def test_a_plugin_that_failed_before_may_fail_in_the_dry_run(reloadable: Reloadable) -> None:
    """A dry run rejects only new failures."""
    harness = reloadable.harness
    assert reloadable.reload(code=plugin(RAISES))
    harness.cluster.add(make_pod("p"))
    harness.run_for(0.1)
    assert reloadable.reload(code=plugin(RAISES, version="v2"))
    assert not reloadable.reload(code=plugin(RAISES), configuration="profiles:\n- schedulerName: x\nnonsense: 1\n")


# Rollbacks


def raises_later(point: str) -> str:
    """Return a plugin that fails in a method that a dry run does not call."""
    if point == "pre_bind":
        return plugin(
            "def pre_bind_needed(self, state, pod, node): return True\n"
            "async def pre_bind(self, state, pod, node): raise LookupError('lost')",
            "v2",
        )
    return plugin(f"def {point}(self, state, pod, node): raise LookupError('lost')", "v2")


@pytest.mark.parametrize("point", ["permit", "pre_bind"])
def test_plugins_that_keep_failing_are_rolled_back(reloadable: Reloadable, point: str) -> None:
    """The failed pods are scheduled by the previous plugins."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    before = reloadable.mine()
    assert reloadable.reload(code=raises_later(point))
    for number in range(8):
        cluster.add(make_pod(f"p{number}"))
    harness.run_until_idle()
    assert reloadable.mine() is before
    assert set(harness.bindings.values()) == {"v1"}
    assert len(harness.bindings) == 8
    event = reloadable.events[-1]
    assert event[:2] == ("Warning", "RolledBack")
    assert "of the first 5 attempts: running" in event.note
    assert (reloadable.count("rollback"), reloadable.metrics.successful.read()[()]) == (1, 0)


def test_errors_of_the_api_server_cause_no_rollback(reloadable: Reloadable) -> None:
    """Every binding fails at first, and the new plugins stay."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    assert reloadable.reload(code=plugin(version="v2"))
    cluster.faults.fail("bind", "TooManyRequests", times=10)
    for number in range(10):
        cluster.add(make_pod(f"p{number}"))
    harness.run_until_idle()
    assert set(harness.bindings.values()) == {"v2"}
    assert reloadable.count("rollback") == 0


def test_after_enough_attempts_new_plugins_are_accepted(reloadable: Reloadable) -> None:
    """Later errors cause no rollback, and a later rollback returns to these plugins."""
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    moody = "mood = []\ndef permit(self, state, pod, node):\n    return 1 // 0 if self.mood else None"
    assert reloadable.reload(code=plugin(moody))
    for number in range(20):
        cluster.add(make_pod(f"p{number}"))
    harness.run_until_idle()
    proven = reloadable.mine()
    proven.mood.append("bad")
    for number in range(10):
        cluster.add(make_pod(f"q{number}"))
    harness.run_for(30.0)
    assert reloadable.count("rollback") == 0
    proven.mood.clear()
    assert reloadable.reload(code=raises_later("permit"))
    harness.cluster.add(make_node("v2-more"))
    for number in range(10):
        cluster.add(make_pod(f"r{number}"))
    harness.run_until_idle()
    assert reloadable.mine() is proven
    assert len(harness.bindings) == 40


# Many reloads


def evaluations(harness: SchedulerHarness) -> dict[tuple[str, ...], float]:
    return harness.metrics.plugin_evaluations.read()


def test_two_hundred_reloads_under_load(reloadable: Reloadable) -> None:
    """Half of them are broken. No pod is lost, none is placed by a rejected version, and memory does not grow."""
    # Other tests may have left some.
    alive_before = _profiles_alive()
    harness, cluster = reloadable.harness, reloadable.harness.cluster
    for number in range(200):
        cluster.add(make_node(f"v{number + 3}"))
    broken = ["class Mine(", "x = 1", plugin(RAISES), plugin("def score(self, wrong): return 1")]
    allowed: dict[str, set[str]] = {}
    version, counted = "v1", evaluations(harness)
    for number in range(200):
        pods = [cluster.add(make_pod(f"p{number}-{index}", cpu="1m")).metadata.name for index in range(3)]
        before = version
        if number % 2:
            assert not reloadable.reload(code=broken[number // 2 % len(broken)])
        else:
            version = f"v{number + 3}"
            assert reloadable.reload(code=plugin(version=version))
        for pod in pods:
            allowed[pod] = {before, version}
        harness.run_for(0.01)
        now = evaluations(harness)
        assert all(now[key] >= count for key, count in counted.items())
        counted = now
    harness.run_until_idle()
    assert len(harness.bindings) == 600
    for pod, versions in allowed.items():
        # Names of nodes have the same beginning: v2 lets pods onto v20, too.
        assert any(cluster.node_of(pod).startswith(one) for one in versions)
    assert (reloadable.count("success"), reloadable.count("failure")) == (100, 100)
    assert sum(name.startswith("kubestow_plugin_mine_") for name in sys.modules) <= 2
    assert _profiles_alive() - alive_before <= 4


def _profiles_alive() -> int:
    gc.collect()
    return sum(isinstance(thing, Profile) for thing in gc.get_objects())
