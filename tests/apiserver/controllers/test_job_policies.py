"""The rules of Jobs as pure functions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.apiserver.controllers import job_policies as policies


def exited_pod(code: int = 0, container: str = "c", **status: Any) -> dict[str, Any]:
    """Return a pod whose container exited."""
    state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:05Z"}}
    return {
        "metadata": {"namespace": "n", "name": "p"},
        "status": {"containerStatuses": [{"name": container, "state": state}], **status},
    }


@pytest.mark.parametrize(
    ("indexes", "text"), [([], ""), ([3], "3"), ([1, 2], "1,2"), ([0, 1, 2, 5], "0-2,5"), ([7, 1, 3, 2], "1-3,7")]
)
def test_indexes_are_written_as_kubernetes_does(indexes: list[int], text: str) -> None:
    """Three or more consecutive indexes are a range."""
    assert policies.format_indexes(indexes) == text


@given(st.sets(st.integers(0, 60)))
def test_formatted_indexes_parse_to_the_same_set(indexes: set[int]) -> None:
    """Parsing is the inverse of formatting."""
    assert policies.parse_indexes(policies.format_indexes(indexes), 61) == indexes


def test_indexes_beyond_the_completions_do_not_count() -> None:
    """The completions of a Job can be reduced."""
    assert policies.parse_indexes("1,3-9", 5) == {1, 3, 4}


IN = {"onExitCodes": {"operator": "In", "values": [42]}}
NOT_IN = {"onExitCodes": {"operator": "NotIn", "values": [1, 2]}}
OTHER = {"onExitCodes": {"containerName": "other", "operator": "In", "values": [42]}}
YES, NO = ({"type": "DisruptionTarget", "status": status} for status in ("True", "False"))
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "failed", "action", "counts"),
    [
        ([], exited_pod(1), "", True),
        ([{"action": "FailJob", **IN}], exited_pod(42), "FailJob", True),
        ([{"action": "FailJob", **IN}], exited_pod(41), "", True),
        ([{"action": "FailJob", **OTHER}], exited_pod(42), "", True),
        ([{"action": "Ignore", **NOT_IN}], exited_pod(3), "Ignore", False),
        ([{"action": "Ignore", **NOT_IN}], exited_pod(0), "", True),
        ([{"action": "Count", **IN}, {"action": "FailJob", **IN}], exited_pod(42), "Count", True),
        ([{"action": "FailIndex", **IN}], exited_pod(42), "FailIndex", True),
        ([{"action": "Ignore", **DISRUPTED}], exited_pod(1, conditions=[YES]), "Ignore", False),
        ([{"action": "Ignore", **DISRUPTED}], exited_pod(1, conditions=[NO]), "", True),
    ],
)  # fmt: skip
def test_the_first_rule_that_matches_decides(
    rules: list[dict[str, Any]], failed: dict[str, Any], action: str, counts: bool
) -> None:
    """By exit codes of one or any container, or conditions of the pod."""
    verdict = policies.evaluate_failure({"rules": rules}, failed)
    assert (verdict.action, verdict.counts) == (action, counts)


def test_the_message_names_the_rule_that_failed_a_job() -> None:
    """The message is that of Kubernetes."""
    verdict = policies.evaluate_failure({"rules": [{"action": "FailJob", **IN}]}, exited_pod(42))
    assert verdict.message == "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 0"


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededCount": 2}, {0, 1}, True),
        ({"succeededCount": 2}, {0}, False),
        ({"succeededIndexes": "0-2"}, {0, 1, 2, 5}, True),
        ({"succeededIndexes": "0-2"}, {0, 1}, False),
        ({"succeededIndexes": "0-2", "succeededCount": 1}, {2}, True),
        ({"succeededIndexes": "0-2", "succeededCount": 1}, {5}, False),
    ],
)
def test_a_success_policy_requires_indexes_or_a_count(rule: dict[str, Any], succeeded: set[int], met: bool) -> None:
    """Or a number of certain indexes."""
    matched = policies.matched_success({"rules": [rule]}, 10, succeeded)
    assert matched == ("Matched rules at index 0" if met else "")


def test_the_backoff_doubles_up_to_ten_minutes() -> None:
    """It is ten seconds after the first failure."""
    assert [policies.wait_after(count) for count in (0, 1, 2, 3, 7, 50)] == [0, 10, 20, 40, 600, 600]
