"""Derives the settings of `kubestow scheduler` from flags: configuration, features, logs, metrics.

A configuration file overrides the deprecated flags; the leader election flags, and a Policy, override the file.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from kubestow import config
from kubestow.cli import configuration_file
from kubestow.cli.scheduler.flags import FLAGS
from kubestow.cli.scheduler.policy_source import policy_source
from kubestow.cli.support import CommandError
from kubestow.config import ConfigError, Features, SchedulerConfiguration, validation
from kubestow.config.features import FeatureGateError
from kubestow.config.versions import VersionError, Versions, compatible_version, emulated_version
from kubestow.telemetry.log_setup import LogOptions, parse_modules
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.options import MetricOptions, MetricOptionsError, metric_options

if TYPE_CHECKING:
    from kubestow.cli.scheduler.options import DecisionOptions, TracingOptions
    from kubestow.client.access import Access
    from kubestow.plugin.loading import PluginCollection
    from kubestow.server.listening import Listening

log = get_logger(__name__)


class SettingsError(CommandError):
    """Flags, or a file they name, are invalid; each line names the flag or the file."""


class Flags:
    """The values of all flags, and the names of those on the command line."""

    def __init__(self, values: Mapping[str, Any], given: frozenset[str]) -> None:
        self._values = values
        self.given = given

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def items(self) -> list[tuple[str, Any]]:
        return sorted(self._values.items())


class Settings(msgspec.Struct, frozen=True):
    """All settings of a scheduler process."""

    flags: Flags
    configuration: SchedulerConfiguration
    features: Features
    plugins: "PluginCollection"
    access: "Access"
    has_server: bool
    decisions: "DecisionOptions"
    tracing: "TracingOptions | None"
    set_verbosity: Callable[[int], None]

    @property
    def watches_at_once(self) -> bool:
        """Whether the cluster is watched as soon as possible, without a lease and without spans."""
        delays = self.configuration.leaderElection.leaderElect and self.configuration.delayCacheUntilActive
        return not delays and self.tracing is None


_CLIENT_CONNECTION = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "contentType",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_LEADER_ELECTION = {
    "leader-elect": "leaderElect",
    "leader-elect-lease-duration": "leaseDuration",
    "leader-elect-renew-deadline": "renewDeadline",
    "leader-elect-retry-period": "retryPeriod",
    "leader-elect-resource-lock": "resourceLock",
    "leader-elect-resource-name": "resourceName",
    "leader-elect-resource-namespace": "resourceNamespace",
}
_OPEN = "authorization-always-allow-paths"
_UIDS, _STANDARD_UID = "requestheader-uid-headers", "x-remote-uid"
_HEADERS = (
    "requestheader-username-headers",
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
    _UIDS,
)
_WHOLE = {"profiling": "enableProfiling", "contention-profiling": "enableContentionProfiling"}


def features_of(flags: Flags) -> Features:
    """Return the features from flags. Raises SettingsError."""
    name = "emulated-version"
    try:
        emulated = emulated_version(flags[name])
        name = "min-compatibility-version"
        versions = Versions(emulated, compatible_version(flags[name], emulated))
        name = "feature-gates"
        return Features.parse(",".join(flags[name]), versions)
    except (VersionError, FeatureGateError) as error:
        raise SettingsError("\n".join(f"--{name}: {line}" for line in str(error).splitlines())) from None


def plugins_of(flags: Flags) -> "PluginCollection":
    """Load the plugins that the configuration can name. Raises SettingsError."""
    # Imported only now: help and usage errors must not pay for the framework.
    from kubestow.plugin.loading import PluginCollection, PluginLoadError

    try:
        return PluginCollection(flags["plugin"])
    except PluginLoadError as error:
        raise SettingsError(f"--plugin: {error}") from None


def configuration_of(flags: Flags, features: Features, plugins: "PluginCollection") -> SchedulerConfiguration:
    """Return the complete, valid configuration. Raises SettingsError."""
    path = where = flags["config"]
    try:
        if path:
            configuration = configuration_file.load(path, features, plugins)
        else:
            configuration = _with_deprecated(config.default(features), flags)
        election = replace(configuration.leaderElection, **_given(flags, _LEADER_ELECTION))
        configuration = replace(configuration, leaderElection=election)
        source = policy_source(flags)
        if source is not None:
            # Imported only now: rarely used.
            from kubestow.config import policy

            where = source.name
            configuration = policy.load(source.read(configuration, flags), features, configuration)
        problems = [*validation.validate(configuration, features, plugins), *validation.renewal_problems(election)]
    except ConfigError as error:
        problems = error.problems
    if problems:
        raise SettingsError("\n".join(f"{where or 'flags'}: {problem}" for problem in problems))
    return configuration


def has_server(flags: Flags) -> bool:
    """Return whether the HTTPS server is on. Raises SettingsError."""
    port = flags["secure-port"]
    if not 0 <= port <= 65535:
        raise SettingsError(f"--secure-port: {port} is not a port; 0 serves nothing")
    if port == 0 and flags["ui"]:
        raise SettingsError("--ui: the page is served at the secure port; --secure-port must not be 0")
    for name in _HEADERS:
        if not all(header.strip() for header in flags[name]):
            raise SettingsError(f"--{name}: a header must have a name")
    for path in flags[_OPEN]:
        if "*" in path[:-1]:
            raise SettingsError(f"--{_OPEN}: a * may stand only at the end, not as in {path!r}")
    if flags[_UIDS] and _STANDARD_UID not in (header.lower() for header in flags[_UIDS]):
        raise SettingsError(f"--{_UIDS}: must name {_STANDARD_UID}, too, which the API server sends")
    return bool(port)


def listening_address(flags: Flags) -> "Listening":
    """Return the address to serve on."""
    # Imported only now: help and usage errors must not pay for it.
    from kubestow.server.listening import Listening

    return Listening(flags["bind-address"], flags["secure-port"], flags["permit-port-sharing"])


def flag_values(flags: Flags) -> dict[str, str]:
    """Return the value of every flag as text."""
    return {name: FLAGS[name].type.write(value) for name, value in flags.items()}


def log_options_of(flags: Flags) -> LogOptions:
    """Return the log options. Raises SettingsError."""
    kind = flags["logging-format"]
    try:
        modules = parse_modules(",".join(flags["vmodule"]))
    except ValueError as error:
        raise SettingsError(f"--vmodule: {error}") from None
    if kind not in ("text", "json"):
        raise SettingsError(f"--logging-format: must be text or json, not {kind!r}")
    if modules and kind != "text":
        raise SettingsError("--vmodule: only works with --logging-format=text")
    if flags["log-flush-frequency"].seconds <= 0:
        raise SettingsError("--log-flush-frequency: must be greater than 0")
    for name in ("log-json-info-buffer-size", "log-text-info-buffer-size"):
        if flags[name] < 0:
            raise SettingsError(f"--{name}: must not be negative")
    return LogOptions(
        format=kind,
        verbosity=flags["v"],
        modules=modules,
        split_stream=flags[f"log-{kind}-split-stream"],
        info_buffer_size=flags[f"log-{kind}-info-buffer-size"],
    )


def metric_options_of(flags: Flags) -> MetricOptions:
    """Return the metric options. Raises SettingsError."""
    try:
        return metric_options(
            flags["disabled-metrics"],
            dict(flags["allow-metric-labels"]),
            flags["allow-metric-labels-manifest"],
            flags["show-hidden-metrics-for-version"],
        )
    except MetricOptionsError as error:
        raise SettingsError(str(error)) from None


def write_configuration(path: str, configuration: SchedulerConfiguration) -> None:
    """Write the configuration to a file. Raises SettingsError."""
    try:
        Path(path).write_text(config.dump(configuration), encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"--write-config-to: cannot write {path}: {error.strerror}") from None


def warn_of_overridden_flags(flags: Flags) -> None:
    """Log a warning that names the flags that have no effect because of --config, and the fields to set instead."""
    fields = {flag: f"clientConnection.{field}" for flag, field in _CLIENT_CONNECTION.items()} | _WHOLE
    overridden = [f"--{flag}: {field}" for flag, field in sorted(fields.items()) if flag in flags.given]
    if flags["config"] and overridden:
        log.warning(
            "Flags have no effect with --config, set the fields instead", file=flags["config"], flags=overridden
        )


def _with_deprecated(configuration: SchedulerConfiguration, flags: Flags) -> SchedulerConfiguration:
    connection = replace(configuration.clientConnection, **_given(flags, _CLIENT_CONNECTION))
    return replace(configuration, clientConnection=connection, **_given(flags, _WHOLE))


def _given(flags: Flags, fields: Mapping[str, str]) -> dict[str, Any]:
    return {field: flags[flag] for flag, field in fields.items() if flag in flags.given}
