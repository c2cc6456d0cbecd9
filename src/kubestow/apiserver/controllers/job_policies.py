"""The rules of Jobs as pure functions: indexes, failure policies, success policies, backoff after failures."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from kubestow.api.timestamps import parse_time

Object = dict[str, Any]
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
_FIRST_WAIT = 10.0
_LONGEST_WAIT = 600.0


class Failure(NamedTuple):
    """The effect of a failure policy on a failed pod: whether it counts, and the action and message of the rule."""

    counts: bool = True
    action: str = ""
    message: str = ""


def parse_indexes(text: str, completions: int) -> set[int]:
    """Parse indexes such as 1,3-5; those from `completions` on are dropped."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Format indexes as a list such as 1,3-5."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    # A range of two is written as two numbers, as in Kubernetes.
    return ",".join(
        str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
        for first, last in parts
    )


def evaluate_failure(policy: Object | None, pod: Object) -> Failure:
    """Return the effect of the first rule that matches a failed pod."""
    for index, rule in enumerate((policy or {}).get("rules", ())):
        action: str = rule["action"]
        why = _matching_exit(rule["onExitCodes"], pod) if rule.get("onExitCodes") else ""
        if not why and rule.get("onPodConditions"):
            why = _matching_condition(rule["onPodConditions"], pod)
        if why:
            message = f"{why} matching {action} rule at index {index}" if action == "FailJob" else ""
            return Failure(action != "Ignore", action, message)
    return Failure()


def _matching_exit(wanted: Object, pod: Object) -> str:
    status, metadata = pod.get("status", {}), pod["metadata"]
    for one in (*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())):
        code = one.get("state", {}).get("terminated", {}).get("exitCode", 0)
        named = wanted.get("containerName") in (None, one["name"])
        if named and code and (code in wanted["values"]) == (wanted["operator"] == "In"):
            where = f"{metadata['namespace']}/{metadata['name']}"
            return f"Container {one['name']} for pod {where} failed with exit code {code}"
    return ""


def _matching_condition(patterns: list[Object], pod: Object) -> str:
    wanted = {(one["type"], one.get("status", "True")) for one in patterns}
    for one in pod.get("status", {}).get("conditions", ()):
        if (one["type"], one["status"]) in wanted:
            return f"Pod {pod['metadata']['namespace']}/{pod['metadata']['name']} has condition {one['type']}"
    return ""


def matched_success(policy: Object | None, completions: int, succeeded: set[int]) -> str:
    """Return the message with the success policy rule that is met; empty if there is none."""
    for index, rule in enumerate((policy or {}).get("rules", ()) if succeeded else ()):
        count = rule.get("succeededCount")
        if "succeededIndexes" in rule:
            wanted = parse_indexes(rule["succeededIndexes"], completions)
            have = len(wanted & succeeded)
            met = bool(wanted) and (have == len(wanted) or (count is not None and have >= count))
        else:
            met = count is not None and len(succeeded) >= count
        if met:
            return f"Matched rules at index {index}"
    return ""


def wait_after(failures: int) -> float:
    """Return the backoff in seconds after a number of consecutive failures."""
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 10)) if failures else 0.0


def finished_at(pod: Object, now: float) -> float:
    """Return the time at which the last container of a pod ended, else that of its deletion, else `now`."""
    ends = [
        one["state"]["terminated"]["finishedAt"]
        for one in pod.get("status", {}).get("containerStatuses", ())
        if one.get("state", {}).get("terminated", {}).get("finishedAt")
    ]
    if ends:
        return parse_time(max(ends))
    metadata = pod["metadata"]
    if "deletionTimestamp" in metadata:
        return parse_time(metadata["deletionTimestamp"]) - float(metadata.get("deletionGracePeriodSeconds", 0))
    return now
