"""The checks of `kubestow doctor`: each yields findings with advice."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import yaml

from kubestow import config
from kubestow.api.custom_kinds import resource_of
from kubestow.api.failures import ApiError, BadAnswerError, CallError, NotFoundError, UnauthorizedError
from kubestow.api.timestamps import parse_time
from kubestow.client.api import ApiClient
from kubestow.client.candidate import ADVICE as CANDIDATES_ADVICE
from kubestow.client.resources import WATCHED, watched_by_gates
from kubestow.config import Features, SchedulerConfiguration
from kubestow.config.features import SCHEDULING_GATES
from kubestow.config.versions import NEWEST
from kubestow.insight.explain.scheduler_pages import SchedulerAddress, missing_plugins
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.declarations import permissions_for, watches_of

OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
OLDEST = 30
MOST_SKEW = 2.0
"""Maximum clock difference in seconds: conditions and events have timestamps, certificates a validity period."""

WRITES = (
    ("", "pods/binding", "create", ""),
    ("", "pods/status", "patch", ""),
    ("", "pods", "delete", ""),
    ("", "persistentvolumeclaims", "update", ""),
    ("", "persistentvolumes", "update", ""),
    ("events.k8s.io", "events", "create", ""),
    ("events.k8s.io", "events", "patch", ""),
    ("resource.k8s.io", "resourceclaims", "create", ""),
    ("resource.k8s.io", "resourceclaims", "delete", ""),
    ("resource.k8s.io", "resourceclaims", "update", ""),
    ("resource.k8s.io", "resourceclaims/status", "patch", ""),
    ("resource.k8s.io", "resourceclaims/status", "update", ""),
    ("coordination.k8s.io", "leases", "create", ""),
    ("coordination.k8s.io", "leases", "get", "lease"),
    ("coordination.k8s.io", "leases", "update", "lease"),
    ("authentication.k8s.io", "tokenreviews", "create", ""),
    ("authorization.k8s.io", "subjectaccessreviews", "create", ""),
)
"""The writes of a scheduler: group, resource, verb, and `lease` for permissions on the lease only."""
ALLOCATION_WRITES = (("resource.k8s.io", "resourceclaims/binding", "update", ""),)
"""Permissions that API servers from v1.36 on require for device allocation."""
_FIRST_WITH_ALLOCATION_WRITES = 36
GROUP_WRITES = (("scheduling.k8s.io", "podgroups/status", "patch", ""),)
CANDIDATES = "/apis/coordination.k8s.io/v1beta1", "leasecandidates"
CANDIDATE_WRITES = tuple(("coordination.k8s.io", "leasecandidates", verb, "") for verb in ("create", "get", "update"))
_LEASES = "coordination.k8s.io"
_IGNORED = ("clientConnection.kubeconfig", "apiVersion", "kind")


class Setting(NamedTuple):
    """The command line."""

    kubeconfig: str
    context: str
    configuration: str | None
    plugins: PluginCollection
    features: Features
    server: SchedulerAddress


class Finding(NamedTuple):
    """The result of a check; `advice`: how to fix a problem."""

    level: str
    what: str
    advice: str = ""


class Checks:
    """Checks of one cluster as one user. Without a valid configuration, what depends on it is not checked."""

    def __init__(
        self,
        client: ApiClient,
        configuration: SchedulerConfiguration | None,
        setting: Setting,
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._configuration = configuration
        self._setting = setting
        self._now = now
        features = setting.features
        self._watched = [*WATCHED, *watched_by_gates(features)]
        self._written = [*WRITES]
        self._written += GROUP_WRITES if features.generic_workload else ()
        self._written += CANDIDATE_WRITES if features.coordinated_leader_election else ()

    async def _get(self, path: str) -> dict[str, Any]:
        return _decoded((await self._client.request("GET", path)).body)

    async def _ask(self, group: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = msgspec.json.encode({"apiVersion": f"{group}/v1", "kind": kind, "spec": spec})
        path = f"/apis/{group}/v1/{kind.lower()}s"
        return _decoded((await self._client.request("POST", path, body)).body)

    async def version(self) -> AsyncIterator[Finding]:
        """Check the version of the API server. Raises CallError if it does not answer."""
        response = await self._get("/version")
        minor = int("".join(filter(str.isdecimal, str(response.get("minor", "0")))) or 0)
        self._written += ALLOCATION_WRITES if minor >= _FIRST_WITH_ALLOCATION_WRITES else ()
        what = f"API server {response.get('gitVersion')}"
        if OLDEST <= minor <= NEWEST:
            yield Finding(OK, what)
        else:
            yield Finding(
                NOTE, f"{what}; tested versions are v1.{OLDEST} to v1.{NEWEST}", "try it as a second scheduler first"
            )

    async def clock(self) -> AsyncIterator[Finding]:
        """Check the user and the clock with a SelfSubjectReview."""
        before = self._now()
        try:
            response = await self._ask("authentication.k8s.io", "SelfSubjectReview", {})
        except UnauthorizedError:
            # All further requests would fail, too.
            raise
        except NotFoundError as error:
            yield Finding(NOTE, f"the server's clock is unknown: {error}", "compare the clocks manually")
            return
        except CallError as error:
            yield Finding(
                PROBLEM,
                f"the server's clock is unknown: {error}",
                "allow the user to create selfsubjectreviews, or try again",
            )
            return
        user = response.get("status", {}).get("userInfo", {}).get("username", "?")
        yield Finding(OK, f"the scheduler runs as {user}")
        written = response.get("metadata", {}).get("creationTimestamp")
        if not written:
            yield Finding(NOTE, "the server does not report the time", "compare the clocks manually")
            return
        # The server wrote it while we waited for the answer, without the fraction of the second.
        seen = parse_time(written)
        ahead, behind = before - (seen + 1), seen - self._now()
        if max(ahead, behind) <= MOST_SKEW:
            yield Finding(OK, "clocks agree")
        else:
            skew = ahead if ahead > 0 else -behind
            what = f"this clock differs from the server's by {skew:+.0f} s"
            yield Finding(PROBLEM, what, "run an NTP client on both machines")

    async def api_versions(self) -> AsyncIterator[Finding]:
        """Check that the watched resources are served, by group and version."""
        by_version: dict[str, list[str]] = {}
        for resource in self._watched:
            by_version.setdefault(resource.path.rpartition("/")[0], []).append(resource.plural)
        if self._setting.features.coordinated_leader_election:
            by_version[CANDIDATES[0]] = [CANDIDATES[1]]
        for path, plurals in by_version.items():
            version = path.removeprefix("/apis/").removeprefix("/api/")
            try:
                served = await self._served(path)
            except ApiError as error:
                yield Finding(PROBLEM, f"{version}: {error}", f"allow the user to get {path}, or try again")
                continue
            missing = [plural for plural in plurals if plural not in served]
            what = f"{version}: the server has no {', '.join(missing)}"
            if path == CANDIDATES[0] and missing:
                yield Finding(PROBLEM, f"{what}, so that no leader is elected", CANDIDATES_ADVICE)
            elif missing:
                others = await self._other_versions(path, missing)
                what += f"; those of {', '.join(others)} are not supported" if others else ""
                yield Finding(NOTE, what, "pods that need them stay pending; see docs/reference/older-clusters.md")
            else:
                yield Finding(OK, f"{version}: {', '.join(plurals)}")

    async def _served(self, path: str) -> set[str]:
        """Return the plural names of the resources of a group and version."""
        try:
            return {entry["name"] for entry in (await self._get(path)).get("resources", ())}
        except NotFoundError:
            return set()

    async def _other_versions(self, path: str, plurals: list[str]) -> list[str]:
        """Return the other versions of a group in which the server has some of the resources."""
        group = path.rpartition("/")[0]
        try:
            versions = [entry["groupVersion"] for entry in (await self._get(group)).get("versions", ())]
            return [one for one in versions if not (await self._served(f"/apis/{one}")).isdisjoint(plurals)]
        except ApiError:
            return []

    async def rights(self) -> AsyncIterator[Finding]:
        """Check the permissions for everything that the scheduler reads and writes."""
        wanted = [(watched.group, watched.plural, verb, "") for watched in self._watched for verb in ("list", "watch")]
        wanted += [one for one in self._written if self._configuration is not None or one[0] != _LEASES]
        lacking: dict[str, list[str]] = {}
        for group, resource, verb, scope in wanted:
            if not await self._may(group, resource, verb, scope):
                lacking.setdefault(f"{resource}{'.' + group if group else ''}", []).append(verb)
        if lacking:
            what = "; ".join(f"{', '.join(verbs)} {resource}" for resource, verbs in lacking.items())
            advice = "bind the roles system:kube-scheduler and system:volume-scheduler, or deploy/kubernetes/rbac.yaml"
            yield Finding(PROBLEM, f"missing permissions: {what}", advice)
        else:
            yield Finding(OK, f"all {len(wanted)} permissions are granted")

    async def plugins(self) -> AsyncIterator[Finding]:
        """Check that the kinds of the loaded plugins are served, and the permissions to watch and write them."""
        for loaded in self._setting.plugins.loaded:
            watched = watches_of(loaded.plugin)
            needed = permissions_for(watched)
            for one in watched:
                declared = resource_of(one.kind)
                if declared is None:
                    continue
                path = f"/apis/{declared.api_version}" if declared.group else f"/api/{declared.api_version}"
                served = await self._served(path)
                missing = [declared.plural, *([f"{declared.plural}/status"] if "status" in one.writes else ())]
                missing = [name for name in missing if name not in served]
                if missing:
                    effect = "rejects pods" if one.blocks else "runs as if there were none"
                    what = f"plugin {loaded.name}: the server has no {', '.join(missing)} of {declared.api_version}"
                    advice = f"install the definition; until then the plugin {effect}"
                    if declared.plural in served:
                        advice = "add `subresources: {status: {}}` to the definition; until then its writes are refused"
                    yield Finding(NOTE, what, advice)
            lacking = [one for one in needed if not await self._may(one.group, one.resource, one.verb, "")]
            if lacking:
                listed = ", ".join(f"{one.verb} {one.resource}.{one.group}" for one in lacking)
                source = loaded.name if loaded.source.startswith("package ") else loaded.source
                advice = f"bind the role that `kubestow plugin rbac {source}` prints"
                yield Finding(PROBLEM, f"plugin {loaded.name}: missing permissions: {listed}", advice)
            elif needed:
                yield Finding(OK, f"plugin {loaded.name}: all {len(needed)} permissions are granted")

    async def _may(self, group: str, resource: str, verb: str, scope: str) -> bool:
        plural, _, subresource = resource.partition("/")
        attributes = {"group": group, "resource": plural, "subresource": subresource, "verb": verb}
        if self._configuration is not None and group == _LEASES:
            attributes["namespace"] = self._configuration.leaderElection.resourceNamespace
            if scope == "lease":
                attributes["name"] = self._configuration.leaderElection.resourceName
        spec = {"resourceAttributes": attributes}
        response = await self._ask("authorization.k8s.io", "SelfSubjectAccessReview", spec)
        return bool(response.get("status", {}).get("allowed"))

    async def leader(self) -> AsyncIterator[Finding]:
        """Check the holder of the lease, and whether two schedulers would schedule the same pods."""
        if self._configuration is None:
            return
        election = self._configuration.leaderElection
        name = f"{election.resourceNamespace}/{election.resourceName}"
        namespace = f"/apis/coordination.k8s.io/v1/namespaces/{election.resourceNamespace}/leases"
        try:
            spec = (await self._get(f"{namespace}/{election.resourceName}")).get("spec") or {}
        except NotFoundError:
            spec = {}
        except CallError as error:
            what = f"the leader is unknown: the lease {name} cannot be read: {error}"
            yield Finding(PROBLEM, what, "allow the user to get it, or try again")
            return
        holder = spec.get("holderIdentity")
        silent = self._now() - parse_time(spec["renewTime"]) if spec.get("renewTime") else 0.0
        if not holder:
            yield Finding(OK, f"the lease {name} has no holder")
        elif silent > spec.get("leaseDurationSeconds", election.leaseDuration.seconds):
            what = f"{holder} held the lease {name}, and has not renewed it for {silent:.0f} s"
            yield Finding(NOTE, what, "make sure that it is stopped")
        elif election.leaderElect:
            yield Finding(OK, f"{holder} holds the lease {name}; the scheduler will wait until it is free")
        else:
            advice = "turn leader election on, or stop the other one first"
            yield Finding(PROBLEM, f"{holder} leads; without leader election both would schedule pods", advice)

    def plugins_there(self, running: dict[str, Any]) -> Iterator[Finding]:
        """Yield plugins of the running scheduler that are not installed here."""
        for profile, name in missing_plugins(running, self._setting.plugins):
            what = f"profile {profile} enables the plugin {name}, which is not installed here"
            yield Finding(PROBLEM, what, "write it in Python and pass it with --plugin, or run it as an extender")

    def differences(self, running: dict[str, Any]) -> Iterator[Finding]:
        """Yield the differences of the configurations."""
        assert self._configuration is not None
        here = dict(_flat(yaml.safe_load(config.dump(self._configuration))))
        there = dict(_flat(running))
        differing = (path for path in here.keys() | there.keys() if here.get(path) != there.get(path))
        # A profile that only one of them has is reported as a whole, not by field.
        names = {profile.schedulerName for profile in self._configuration.profiles}
        alone = names ^ {profile.get("schedulerName") for profile in running.get("profiles") or ()}
        ignored = (*_IGNORED, *(f"profiles[{name}]." for name in alone))
        paths = sorted(path for path in differing if not path.startswith(ignored))
        advice = "pass the same file with --config, or the same flags" if self._setting.configuration is None else ""
        for path in paths:
            what = f"{path} is {_value_at(there, path)} there and {_value_at(here, path)} here"
            yield Finding(NOTE, what, advice)
        if not paths:
            yield Finding(OK, "the configurations are the same")

    def gates(self, running_gates: Mapping[str, bool]) -> Iterator[Finding]:
        """Yield the scheduling feature gates with different values."""
        features = self._setting.features
        for gate in SCHEDULING_GATES:
            there, here = running_gates.get(gate.name), features.enabled(gate.name)
            if there is not None and there != here:
                advice = f"pass --feature-gates={gate.name}={str(there).lower()}"
                told_there, told_here = ("on", "off") if there else ("off", "on")
                yield Finding(NOTE, f"the gate {gate.name} is {told_there} there and {told_here} here", advice)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadAnswerError(f"not a response of an API server: {error}") from None


def _value_at(values: dict[str, Any], path: str) -> Any:
    """Return a value in the spelling of the configuration file."""
    value = values.get(path, "not set")
    return str(value).lower() if isinstance(value, bool) else value


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each leaf of a tree, list items by name, without empty values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, inner in enumerate(value):
            name = inner.get("schedulerName") or inner.get("name") or number
            yield f"{path}[{name}]", "set"
            # The path has the name, and a weight of 0 is the default.
            yield from _flat({key: said for key, said in inner.items() if said not in (name, 0)}, f"{path}[{name}]")
    elif value not in (None, [], ""):
        yield path, value
