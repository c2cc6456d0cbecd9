"""Conformance of kind `decision`: pods are scheduled in turn in a recorded cluster; compares verdicts and scores."""

from typing import Any

import numpy as np

from conformance_kinds._inputs import configuration_of, object_of
from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.timestamps import parse_time
from kubestow.config.features import Features
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.extenders.extender import PausedConversation, run_until_calls
from kubestow.scheduler.framework.detached import FixedClock
from kubestow.scheduler.framework.profile import Profile, ProfileError
from kubestow.scheduler.framework.results import PluginError, Rejection
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator

FEATURES = Features(scheduler_async_preemption=False)
NOW = parse_time("2026-06-01T00:00:00Z")
"""Later than any time in the cases: a pod that has not started counts as starting now."""


def check(case: dict[str, Any]) -> str | None:
    """Return the first difference between the recorded decisions and ours, None if there is none."""
    try:
        world = World(case)
    except (config.ConfigError, ProfileError) as error:
        return None if "setupError" in case else f"set-up failed: {error}"
    if "setupError" in case:
        return f"set-up succeeded, expected to fail with {case['setupError']}"
    for manifest, expected in zip(case["pods"], case["expect"], strict=True):
        difference = world.schedule(convert(Pod, manifest), expected)
        if difference is not None:
            return f"{expected['pod']}: {difference}"
    return None


class World:
    """A cluster, and the profiles to schedule with."""

    def __init__(self, case: dict[str, Any], configuration: config.SchedulerConfiguration | None = None) -> None:
        self.cluster = Cluster()
        self.nominator = Nominator()
        for manifest in case["objects"]:
            self._add(object_of(manifest))
        for manifest in case.get("pods", ()):
            pod = convert(Pod, manifest)
            if pod.status.nominatedNodeName:
                self.nominator.nominate(pod)
        handle = offline_handle(self.cluster, FEATURES, nominator=self.nominator, clock=FixedClock(NOW))
        configuration = configuration or configuration_of(case)
        self.profiles = build_profiles(configuration, in_tree_registry(), handle, lambda: 0.0)

    def _add(self, obj: Any) -> None:
        if isinstance(obj, Node):
            self.cluster.set_node(obj)
        elif not isinstance(obj, Pod):
            self.cluster.set_object(obj)
        elif obj.spec.nodeName:
            self.cluster.set_pod(obj)
        elif obj.status.nominatedNodeName:
            self.nominator.nominate(obj)

    def schedule(self, pod: Pod, expected: dict[str, Any]) -> str | None:
        info = PodInfo(pod)
        profile = self.profiles.get(pod.spec.schedulerName or "default-scheduler")
        if profile is None:
            return f"no profile {pod.spec.schedulerName}"
        self.nominator.remove(info.uid)
        evaluation = Evaluation(profile, self.cluster, self.nominator, info)
        try:
            answer = self._evaluate(evaluation)
        except PluginError as error:
            return None if "error" in expected else f"failed: {error}"
        if "error" in expected:
            return f"did not fail, expected {expected['error']}"
        for field in (
            "preFilter",
            "preFilterNodes",
            "rejected",
            "feasible",
            "feasibleCount",
            "scores",
            "best",
            "chosen",
        ):
            if field in expected and (found := answer.get(field)) != expected[field]:
                return f"{field}: {_difference(found, expected[field])}"
        if answer.get("rejected") and "feasibleCount" not in expected and "rejected" not in expected:
            return f"rejected: {answer['rejected']}, expected none"
        for field in ("message", "unschedulablePlugins"):
            if field in expected and answer.get(field) != expected[field]:
                return f"{field}: {answer.get(field)!r}, expected {expected[field]!r}"
        if "chosen" in answer:
            return self._assume(profile, evaluation, info, answer["chosen"], expected)
        if "postFilter" in expected:
            return _post_filter(profile, evaluation, expected["postFilter"])
        return None

    def _assume(
        self, profile: Profile, evaluation: Evaluation, pod: PodInfo, node: str, expected: dict[str, Any]
    ) -> str | None:
        self.cluster.assume(pod, node)
        reserving = [hook for hook in profile.reserve if hook.applies_to(evaluation.states)]
        for hook in reserving:
            rejection = hook.plugin.reserve(evaluation.states.get(hook.name), pod, node)
            if rejection is not None:
                for done in reversed(reserving):
                    done.plugin.unreserve(evaluation.states.get(done.name), pod, node)
                self.cluster.forget(pod.uid)
                found = _status(rejection._replace(plugin=hook.name))
                wanted = expected.get("reserve")
                return None if found == wanted else f"reserve: {found}, expected {wanted}"
        return None if "reserve" not in expected else f"reserve: succeeded, expected {expected['reserve']}"

    def _evaluate(self, evaluation: Evaluation) -> dict[str, Any]:
        names = self.cluster.nodes.names
        answer: dict[str, Any] = {"feasible": []}
        if not evaluation.pre_filter():
            assert evaluation.rejected is not None
            answer["preFilter"] = _status(evaluation.rejected)
            answer |= _failure(evaluation)
            return answer
        answer["preFilter"] = {"code": "Success"}
        if evaluation.narrowed_to is not None:
            answer["preFilterNodes"] = sorted(evaluation.narrowed_to)
        rows = evaluation.filter()
        verdicts = evaluation.verdicts
        assert verdicts is not None
        answer["feasible"] = sorted(names[row] for row in rows)
        answer["feasibleCount"] = len(rows)
        rejected = {
            names[verdicts.rows[i]]: _status(rejection)
            for i in range(len(verdicts.rows))
            if (rejection := verdicts.rejection(i)) is not None
        }
        if rejected:
            answer["rejected"] = rejected
        if not len(rows):
            answer |= _failure(evaluation)
            return answer
        totals = evaluation.score(rows)
        answer["scores"] = {
            names[row]: {
                "total": int(totals[i]),
                "plugins": {score.plugin: int(score.weighted[i]) for score in evaluation.scores},
            }
            for i, row in enumerate(rows)
        }
        answer["best"] = sorted(names[row] for row in rows[totals == np.max(totals)])
        answer["chosen"] = answer["best"][0]
        return answer


def _post_filter(profile: Profile, evaluation: Evaluation, recorded: list[dict[str, Any]]) -> str | None:
    """Return None if the result of PostFilter is among the recorded outcomes, else the difference."""
    result = run_until_calls(run_post_filter(profile, evaluation, None))
    assert not isinstance(result, PausedConversation)
    found = {
        "status": result.code.label,
        "nominated": result.nominated_node or "",
        "victims": sorted(victim.key for victim in result.victims),
        "message": evaluation.message(result.message),
    }
    outcomes = [
        {
            "status": outcome["status"]["code"],
            "nominated": outcome.get("nominated", ""),
            "victims": sorted(outcome.get("victims", ())),
            "message": outcome["message"],
        }
        for outcome in recorded
    ]
    if found in outcomes:
        return None
    return f"postFilter: {_difference(found, outcomes[0])}" + (
        f" (or another of {len(outcomes)})" if len(outcomes) > 1 else ""
    )


def _failure(evaluation: Evaluation) -> dict[str, Any]:
    return {"message": evaluation.message(), "unschedulablePlugins": sorted(evaluation.rejecting_plugins)}


def _status(rejection: Rejection) -> dict[str, Any]:
    status: dict[str, Any] = {"code": rejection.code.label, "reasons": sorted(rejection.reasons)}
    if rejection.plugin:
        status["plugin"] = rejection.plugin
    return status


def _difference(found: Any, expected: Any) -> str:
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in sorted(found.keys() | expected.keys()):
            if found.get(key) != expected.get(key):
                return f"{key}: {_difference(found.get(key), expected.get(key))}"
    return f"{found}, expected {expected}"
