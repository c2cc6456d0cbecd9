"""Rules for Jobs and CronJobs."""

import re
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules import cron
from kubestow.apiserver.rules.causes import (
    check_enums,
    check_not_negative,
    check_unchanged,
    invalid,
    required,
    unsupported,
)
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.lists import each
from kubestow.apiserver.rules.names import INVALID, dns_subdomain
from kubestow.apiserver.rules.placement import check_label_selector
from kubestow.apiserver.rules.pod_groups import check_presence, check_scheduling
from kubestow.apiserver.rules.workloads import UNMATCHED, check_template, default_template
from kubestow.apiserver.selectors import from_object
from kubestow.config.features import Features

_UID = "batch.kubernetes.io/controller-uid"
_NUMBERS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_IMMUTABLE_FIELDS = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_NO_LIMIT = 2**31 - 1
_MAX_INDEXES = 100_000
_MAX_NAME_LENGTH = 52
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_INDEXES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*\Z")
_BY_INDEX = "requires indexed completion mode"
_OTHER_POLICY = (
    "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated"
)


def default_job(obj: dict[str, Any]) -> None:
    """Set the defaults of a Job: one completion, and a backoff limit of six."""
    spec = obj.setdefault("spec", {})
    default_template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if "backoffLimitPerIndex" in spec else 6)
    set_missing(spec, {"completionMode": "NonIndexed", "suspend": False, "manualSelector": False})
    for rule in spec.get("podFailurePolicy", {}).get("rules", ()):
        for condition in rule.get("onPodConditions", ()):
            condition.setdefault("status", "True")
    if not spec.get("podReplacementPolicy"):
        spec["podReplacementPolicy"] = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"


def default_cron_job(obj: dict[str, Any]) -> None:
    """Set the defaults of a CronJob: concurrent Jobs, and a history of three successful and one failed Job."""
    spec = obj.setdefault("spec", {})
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    set_missing(spec, {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})
    template = spec.get("jobTemplate")
    if template is not None:
        template.setdefault("metadata", {})
        default_template(template.setdefault("spec", {}))


def drop_disabled_fields(new: dict[str, Any], old: dict[str, Any] | None, features: Features) -> None:
    """Drop the scheduling of a Job or a CronJob's template if it is disabled, unless the old object has it."""
    if not features.workload_with_job and "scheduling" not in _job_spec(old or {}):
        _job_spec(new).pop("scheduling", None)


def _job_spec(obj: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = obj.get("spec", {})
    return spec if obj.get("kind") == "Job" else spec.get("jobTemplate", {}).get("spec", {})


def validate_cron_job(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the name, the schedule and the Job template of a CronJob."""
    spec, name = obj["spec"], obj["metadata"]["name"]
    if len(name) > _MAX_NAME_LENGTH:
        yield invalid("metadata.name", name, f"must be no more than {_MAX_NAME_LENGTH} characters")
    yield from _check_schedule(spec.get("schedule", ""))
    if "timeZone" in spec:
        yield from _check_zone(spec["timeZone"])
    yield from check_not_negative(
        spec, "spec", "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"
    )
    yield from check_enums(spec, "spec", {"concurrencyPolicy": ("Allow", "Forbid", "Replace")})
    template = spec.get("jobTemplate", {}).get("spec", {})
    if template.get("manualSelector"):
        yield unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    yield from _check_job_spec(template, "spec.jobTemplate.spec")


def _check_schedule(text: str) -> Iterator[Cause]:
    if not text:
        yield required("spec.schedule")
    elif "TZ" in text:
        yield invalid("spec.schedule", text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    else:
        try:
            cron.parse(text)
        except ValueError as error:
            yield invalid("spec.schedule", text, str(error))


def _check_zone(name: str) -> Iterator[Cause]:
    if not name:
        yield invalid("spec.timeZone", name, "timeZone must be nil or non-empty string")
    elif name.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid("spec.timeZone", name, why)
    else:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            yield invalid("spec.timeZone", name, f"unknown time zone {name}")


def select_own_pods(obj: dict[str, Any]) -> None:
    """Label the pods of a Job with its UID and name, and select them by UID."""
    spec = obj["spec"]
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    if not spec["manualSelector"]:
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        labels.update({_UID: uid, "controller-uid": uid, "batch.kubernetes.io/job-name": name, "job-name": name})
        spec.setdefault("selector", {}).setdefault("matchLabels", {})[_UID] = uid
    if not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def validate_job(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the spec and the selector of a Job."""
    spec = obj["spec"]
    yield from _check_job_spec(spec, "spec")
    selector = spec.get("selector")
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from check_label_selector(selector, "spec.selector")
        if not spec["manualSelector"] and selector != {"matchLabels": {_UID: obj["metadata"]["uid"]}}:
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    matcher = from_object(selector)
    if matcher is None or not matcher.matches(labels or {}):
        yield invalid("spec.template.metadata.labels", labels or None, UNMATCHED)


def _check_job_spec(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    yield from check_not_negative(spec, path, *_NUMBERS, "backoffLimitPerIndex", "maxFailedIndexes")
    yield from check_enums(spec, path, {"completionMode": ("NonIndexed", "Indexed")})
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("completionMode") == "Indexed":
        if "completions" not in spec:
            yield required(f"{path}.completions", "when completion mode is Indexed")
        for name in ("parallelism", "maxFailedIndexes"):
            if spec.get(name, 0) > _MAX_INDEXES:
                why = f"must be less than or equal to {_MAX_INDEXES} when completion mode is Indexed"
                yield invalid(f"{path}.{name}", spec[name], why)
    else:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                yield invalid(f"{path}.{name}", spec[name], _BY_INDEX)
    if "managedBy" in spec:
        prefix, slash, rest = spec["managedBy"].partition("/")
        if not (slash and rest) or dns_subdomain(prefix):
            why = 'must be a domain-prefixed path (such as "acme.io/foo")'
            yield invalid(f"{path}.managedBy", spec["managedBy"], why)
    known = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    yield from check_enums(spec, path, {"podReplacementPolicy": known})
    if "podFailurePolicy" in spec:
        yield from _check_failures(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        yield from _check_success(spec, f"{path}.successPolicy")
    if "scheduling" in spec:
        yield from _check_scheduling(spec["scheduling"], spec.get("parallelism", 1), f"{path}.scheduling")
    yield from check_template(spec, f"{path}.template")
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "Always")
    if policy in ("", "Always"):
        yield required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(f"{path}.template.spec.restartPolicy", policy, ("OnFailure", "Never"))
    elif "podFailurePolicy" in spec and policy != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(f"{path}.template.spec.restartPolicy", policy, why)


def _check_scheduling(scheduling: dict[str, Any], parallelism: int, path: str) -> Iterator[Cause]:
    yield from check_scheduling(scheduling, path, optional=True)
    gang = (scheduling.get("schedulingPolicy") or {}).get("gang")
    size = (gang or {}).get("minCount", 0)
    if size > parallelism:
        why = f"must not be greater than parallelism ({parallelism})"
        yield invalid(f"{path}.schedulingPolicy.gang.minCount", size, why)
    if gang is None and "all" in (scheduling.get("disruptionMode") or {}):
        why = "the disruptionMode `all` is not supported with the Basic scheduling policy"
        yield invalid(f"{path}.disruptionMode", "", why)


def _check_scheduling_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the scheduling of a Job is unchanged, except for the size of its gang."""
    path = "spec.scheduling"
    yield from check_presence(new, old, "spec", "scheduling")
    after, before = new.get("scheduling"), old.get("scheduling")
    if after is None or before is None:
        return
    yield from check_presence(after, before, path, "schedulingPolicy")
    policy, previous = after.get("schedulingPolicy"), before.get("schedulingPolicy")
    if policy is not None and previous is not None and ("basic" in policy) != ("basic" in previous):
        yield f"{path}.schedulingPolicy", INVALID, f"Invalid value: {_OTHER_POLICY}"
    yield from check_unchanged(after, before, path, "schedulingConstraints", "disruptionMode", "resourceClaims")


def _check_failures(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    pod = spec.get("template", {}).get("spec", {})
    names = {one.get("name") for kind in ("containers", "initContainers") for one in pod.get(kind, ())}
    for where, rule in each(spec["podFailurePolicy"].get("rules", ()), f"{path}.rules"):
        yield from check_enums(rule, where, {"action": _ACTIONS})
        if rule.get("action") == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield invalid(f"{where}.action", "FailIndex", "requires the backoffLimitPerIndex to be set")
        codes = rule.get("onExitCodes")
        if codes is None:
            if not rule.get("onPodConditions"):
                why = "specifying one of OnExitCodes and OnPodConditions is required"
                yield where, INVALID, f"Invalid value: {why}"
            continue
        where += ".onExitCodes"
        operator, values = codes.get("operator"), codes.get("values", [])
        yield from check_enums(codes, where, {"operator": ("In", "NotIn")})
        if codes.get("containerName") not in (None, *names):
            why = "must be one of the container or initContainer names in the pod template"
            yield invalid(f"{where}.containerName", codes["containerName"], why)
        if not values:
            yield invalid(f"{where}.values", [], "at least one value is required")
        for number, value in enumerate(values):
            if operator == "In" and value == 0:
                yield invalid(f"{where}.values[{number}]", 0, "must not be 0 for the In operator")
        if values != sorted(values):
            yield invalid(f"{where}.values", values, "must be ordered")


def _check_success(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    if spec.get("completionMode") != "Indexed":
        yield invalid(path, spec["successPolicy"], _BY_INDEX)
        return
    rules = spec["successPolicy"].get("rules", [])
    if not rules:
        yield required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
    for index, rule in enumerate(rules):
        where, text = f"{path}.rules[{index}]", rule.get("succeededIndexes")
        if text is None:
            if "succeededCount" not in rule:
                yield required(where, "at least one of succeededCount or succeededIndexes must be specified")
            continue
        if not _INDEXES.match(text):
            why = f'error parsing succeededIndexes: cannot convert string to integer for index: "{text}"'
            yield invalid(f"{where}.succeededIndexes", text, why)
            continue
        large = [one for one in re.findall(r"\d+", text) if int(one) >= spec.get("completions", 0)]
        if large:
            why = f'error parsing succeededIndexes: too large index: "{large[0]}"'
            yield invalid(f"{where}.succeededIndexes", text, why)


def validate_job_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that selector and template are unchanged, except for the scheduling fields of a suspended Job."""
    after, before = new["spec"], old["spec"]
    completions = after.get("completions")
    if completions != before.get("completions"):
        if after.get("completionMode") != "Indexed" or completions is None:
            yield invalid("spec.completions", completions, "field is immutable")
        elif completions != after.get("parallelism"):
            yield invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")
    yield from check_unchanged(after, before, "spec", "selector")
    status = old.get("status", {})
    suspended = any(
        one.get("type") == "Suspended" and one.get("status") == "True" for one in status.get("conditions", ())
    )
    idle = not status.get("active") and ("startTime" not in status or suspended)
    was, is_ = before.get("template", {}), after.get("template", {})
    if (_immutable_part(is_) != _immutable_part(was)) if before.get("suspend") and idle else is_ != was:
        yield "spec.template", INVALID, "Invalid value: field is immutable"
    yield from check_unchanged(after, before, "spec", *_IMMUTABLE_FIELDS)
    yield from _check_scheduling_update(after, before)


def _immutable_part(template: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a suspended Job's template that cannot change."""
    directives = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    spec = {key: value for key, value in template.get("spec", {}).items() if key not in directives}
    others = {k: v for k, v in template.get("spec", {}).get("affinity", {}).items() if k != "nodeAffinity"}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [{k: v for k, v in one.items() if k != "resources"} for one in spec[kind]]
    return {**spec, "affinity": others}
