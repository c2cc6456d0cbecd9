"""The flags of `kubestow scheduler`: one table, with kube-scheduler's names, types, defaults and groups.

Click's options, the reference page and /flagz are generated from it.
"""

from itertools import islice
from typing import Any

import msgspec

from kubestow.cli.scheduler import flag_types as types
from kubestow.cli.scheduler.flag_types import FlagType
from kubestow.config.durations import Duration

_SECOND = 1_000_000_000
_MEBIBYTE = 1024 * 1024
_HTTP_1 = "only HTTP/1.1 is served"

_NO_GATE = "needs no gate LoggingAlphaOptions"
_EMPTY_LEASE = "an empty one is refused, where there the election fails again and again"
_HANDSHAKE = "a certificate of another authority ends the TLS handshake, where there it is answered with 401"


class Flag(msgspec.Struct, frozen=True):
    """A flag. `ignored`: why an accepted flag has no effect; `differs`: the difference from kube-scheduler."""

    name: str
    type: FlagType
    default: Any
    help: str
    ignored: str = ""
    short: str = ""
    differs: str = ""

    @property
    def parameter(self) -> str:
        """The name as a Python identifier."""
        return self.name.replace("-", "_")

    @property
    def default_text(self) -> str:
        """The default as help shows it; empty if there is none."""
        if self.default in ("", (), 0, False) and self.type not in (
            types.INT32_SLICE,
            types.NAMED_CERT_KEY,
            types.STRING_TO_STRING,
        ):
            return ""
        written = self.type.write(self.default)
        return f'"{written}"' if self.type is types.STRING else written


def _deprecated(text: str) -> str:
    return f"DEPRECATED, ignored with --config. {text}"


GROUPS: dict[str, tuple[Flag, ...]] = {
    "Misc": (
        Flag("config", types.STRING, "", "The configuration file (KubeSchedulerConfiguration, YAML or JSON).",
             differs="a changed file is taken over without a restart, unless --reload=off"),
        Flag("master", types.STRING, "", "The address of the API server; wins over the one in the kubeconfig."),
        Flag("write-config-to", types.STRING, "", "Write the configuration to this file, complete, and exit.",
             differs="needs no cluster, and does not look at flags about serving"),
    ),
    "Plugin": (
        Flag("plugin", types.STRINGS, (), "Custom plugins: a Python file, or a module. The configuration enables "
             "them by name. May be repeated."),
        Flag("reload", types.ON_OFF, True, "Reload configuration and plugin files when they change, and on SIGHUP: on "
             "or off."),
    ),
    "Decision": (
        Flag("annotate-decisions", types.BOOL, False, "Annotate pods with decisions, in the format of "
             "kube-scheduler-simulator."),
        Flag("decision-log", types.STRING, "", "Write every decision to this file, as a line of JSON; - is standard "
             "output."),
        Flag("decision-log-max-backups", types.INT, 5, "Number of full files to keep; FILE.1 is the newest."),
        Flag("decision-log-max-size", types.QUANTITY, 100 * _MEBIBYTE, "Maximum size of a file in bytes, e.g. 10Mi; 0: "
             "unlimited."),
        Flag("decision-log-nodes", types.BOOL, False, "Also write the results of every node."),
        Flag("decision-records-bytes", types.QUANTITY, 128 * _MEBIBYTE, "Memory limit of decision records in "
             "bytes, e.g. 64Mi; 0: none are kept. By default none are kept either if nothing is served, logged or "
             "annotated."),
        Flag("ui", types.BOOL, False, "Serve a web page about cluster, queue and decisions at /ui/ of the secure port; "
             "its data requires access to /debug."),
    ),
    "Tracing": (
        Flag("tracing-config-file", types.STRING, "", "Send spans to OpenTelemetry as this file configures: a "
             "TracingConfiguration, as for kube-apiserver. Requires kubestow[otel]."),
        Flag("tracing-plugins", types.BOOL, False, "Also send spans of plugins, for every tenth cycle."),
    ),
    "Secure serving": (
        Flag("bind-address", types.IP, "0.0.0.0", "Address to listen on; an unspecified address means all."),  # noqa: S104
        Flag("cert-dir", types.STRING, "", "Folder of the certificate, kube-scheduler.crt and .key, which is created "
             "if missing; without a folder it is kept in memory. Not used with --tls-cert-file."),
        Flag("disable-http2-serving", types.BOOL, False, "Do not serve HTTP/2.", _HTTP_1),
        Flag("http2-max-streams-per-connection", types.INT, 0, "Streams in one HTTP/2 connection.", _HTTP_1),
        Flag("permit-address-sharing", types.BOOL, False, "Listen with SO_REUSEADDR.", "it is always set"),
        Flag("permit-port-sharing", types.BOOL, False, "Listen with SO_REUSEPORT, to share the port."),
        Flag("secure-port", types.INT, 10259, "The port for HTTPS with authentication and authorization; 0: serve "
             "nothing."),
        Flag("tls-cert-file", types.STRING, "", "The certificate for HTTPS (PEM, followed by its authorities)."),
        Flag("tls-cipher-suites", types.STRINGS, (), "The cipher suites up to TLS 1.2, by their IANA names.",
             differs="those that OpenSSL does not have, such as RC4, are refused"),
        Flag("tls-curve-preferences", types.INT32_SLICE, (), "The key exchange mechanism, as Go's number: 23, 24, 25 "
             "or 29.", differs="only one may be given, and none with ML-KEM: Python's ssl supports no more"),
        Flag("tls-min-version", types.STRING, "", "The oldest TLS version served: VersionTLS10 to VersionTLS13."),
        Flag("tls-private-key-file", types.STRING, "", "The private key of --tls-cert-file."),
        Flag("tls-sni-cert-key", types.NAMED_CERT_KEY, (), "Another certificate and key, for clients that ask for one "
             "of the domains: certificate,key or certificate,key:domain,*.domain. May be repeated."),
    ),
    "Authentication": (
        Flag("authentication-kubeconfig", types.STRING, "", "Kubeconfig of the API server that reviews tokens. "
             "Without it the pod's service account is used; outside a cluster tokens are ignored."),
        Flag("authentication-skip-lookup", types.BOOL, False, "Do not look up missing settings in the cluster: "
             "the authorities of client certificates and of front proxies."),
        Flag("authentication-token-webhook-cache-ttl", types.DURATION, Duration(10 * _SECOND), "How long the review "
             "of a token is cached."),
        Flag("authentication-tolerate-lookup-failure", types.BOOL, True, "Continue if that lookup fails."),
        Flag("client-ca-file", types.STRING, "", "A client with a certificate signed by one of these authorities is "
             "identified by its common name.", differs=_HANDSHAKE),
        Flag("requestheader-allowed-names", types.STRINGS, (), "Common names of front proxies whose headers are "
             "trusted; none: all with a certificate of --requestheader-client-ca-file."),
        Flag("requestheader-client-ca-file", types.STRING, "", "The authorities of certificates of front proxies.",
             differs=_HANDSHAKE),
        Flag("requestheader-extra-headers-prefix", types.STRINGS, ("x-remote-extra-",), "Prefixes of headers in which "
             "front proxies pass extra data of users."),
        Flag("requestheader-group-headers", types.STRINGS, ("x-remote-group",), "Headers with groups."),
        Flag("requestheader-uid-headers", types.STRINGS, (), "Headers with uids."),
        Flag("requestheader-username-headers", types.STRINGS, ("x-remote-user",), "Headers with user names."),
    ),
    "Authorization": (
        Flag("authorization-always-allow-paths", types.STRINGS, ("/healthz", "/readyz", "/livez"), "Paths that "
             "need no authorization; a trailing * matches anything."),
        Flag("authorization-kubeconfig", types.STRING, "", "Kubeconfig of the API server that authorizes "
             "requests. Without it the pod's service account is used; outside a cluster only open paths are served."),
        Flag("authorization-webhook-cache-authorized-ttl", types.DURATION, Duration(10 * _SECOND), "How long an "
             "allowed request is cached."),
        Flag("authorization-webhook-cache-unauthorized-ttl", types.DURATION, Duration(10 * _SECOND), "How long a "
             "denied request is cached."),
    ),
    "Deprecated": (
        Flag("contention-profiling", types.BOOL, True, _deprecated("Profile lock contention."), "there are no locks"),
        Flag("kube-api-burst", types.INT32, 100, _deprecated("Requests to the API server in a burst.")),
        Flag("kube-api-content-type", types.STRING, "application/vnd.kubernetes.protobuf",
             _deprecated("The format of requests."), "requests and answers are JSON, which decodes faster here"),
        Flag("kube-api-qps", types.FLOAT32, 50.0, _deprecated("Requests to the API server in a second.")),
        Flag("kubeconfig", types.STRING, "", _deprecated("Kubeconfig: address and credentials for the API server.")),
        Flag("pod-max-in-unschedulable-pods-duration", types.DURATION, Duration(300 * _SECOND), "DEPRECATED. Maximum "
             "time that a pod stays unschedulable before it is tried again."),
        Flag("policy-config-file", types.STRING, "", "DEPRECATED. A file with a legacy Policy, whose predicates, "
             "priorities and extenders replace profiles and extenders, also those in --config."),
        Flag("policy-configmap", types.STRING, "", "DEPRECATED. The ConfigMap with a legacy Policy under the key "
             "policy.cfg; wins over --policy-config-file."),
        Flag("policy-configmap-namespace", types.STRING, "kube-system", "DEPRECATED. The namespace of "
             "--policy-configmap."),
        Flag("profiling", types.BOOL, True, _deprecated("Serve /debug/pprof, and /debug/flags/v, which changes the "
             "verbosity of logs."), differs="profile, heap and goroutine, of Python code, in pprof's format"),
        Flag("use-legacy-policy-config", types.BOOL, False, "DEPRECATED. Take the Policy from --policy-config-file "
             "even if --policy-configmap is given."),
    ),
    "Leader election": (
        Flag("leader-elect", types.BOOL, True, "Compete for a lease, and schedule only while holding it."),
        Flag("leader-elect-lease-duration", types.DURATION, Duration(15 * _SECOND), "How long others wait after the "
             "last renewal before they take over."),
        Flag("leader-elect-renew-deadline", types.DURATION, Duration(10 * _SECOND), "How long the leader tries to "
             "renew before it gives up; less than the lease duration."),
        Flag("leader-elect-resource-lock", types.STRING, "leases", "The kind of object to compete for: leases."),
        Flag("leader-elect-resource-name", types.STRING, "kube-scheduler", "The name of the lease.",
             differs=_EMPTY_LEASE),
        Flag("leader-elect-resource-namespace", types.STRING, "kube-system", "The namespace of the lease.",
             differs=_EMPTY_LEASE),
        Flag("leader-elect-retry-period", types.DURATION, Duration(2 * _SECOND), "The pause between two attempts to "
             "acquire or renew."),
    ),
    "Feature gate": (
        Flag("emulated-version", types.STRINGS, (), "The version whose feature gates, with their defaults, apply: "
             "kube=1.36 or 1.36. The oldest is three minor versions before this one."),
        Flag("feature-gates", types.FEATURE_GATES, (), "Features to turn on or off: A=true,B=false; a name may be "
             "preceded by kube:. May be repeated.", differs="gates that concern no scheduler change nothing"),
        Flag("min-compatibility-version", types.STRINGS, (), "The oldest version of the components to work with; some "
             "gates are only on by default if no component is older."),
    ),
    "Metrics": (
        Flag("allow-metric-labels", types.STRING_TO_STRING, (), "Allowed values of a label; all others "
             "count as `unexpected`: metric,label=v1,v2. May be repeated."),
        Flag("allow-metric-labels-manifest", types.STRING, "", "File with the same content."),
        Flag("disabled-metrics", types.STRINGS, (), "Metrics that are not served, by their full names."),
        Flag("show-hidden-metrics-for-version", types.STRING, "", "The previous minor version, to serve the "
             "metrics that this version hides."),
    ),
    "Logs": (
        Flag("log-flush-frequency", types.DURATION, Duration(5 * _SECOND), "Maximum time between flushes "
             "of log lines."),
        Flag("log-json-info-buffer-size", types.QUANTITY, 0, "With JSON and split streams: buffer size of "
             "informational messages in bytes, e.g. 512Ki.", differs=_NO_GATE),
        Flag("log-json-split-stream", types.BOOL, False, "With JSON: errors to standard error, informational messages "
             "to standard output.", differs=_NO_GATE),
        Flag("log-text-info-buffer-size", types.QUANTITY, 0, "With text and split streams: buffer size of "
             "informational messages in bytes.", differs=_NO_GATE),
        Flag("log-text-split-stream", types.BOOL, False, "With text: errors to standard error, informational messages "
             "to standard output.", differs=_NO_GATE),
        Flag("logging-format", types.STRING, "text", "text or json."),
        Flag("v", types.LEVEL, 0, "Verbosity: 0 the most important messages, 2 changes, 3 and 4 decisions, 5 all.",
             short="v"),
        Flag("vmodule", types.MODULES, (), "Verbosity of single modules: pattern=N,pattern=N.",
             differs="patterns match the names of Python modules"),
    ),
    "Global": (
        Flag("version", types.VERSION, "", "Print the version and exit; --version=raw prints all details.",
             differs="names Kubestow's version, too"),
    ),
}  # fmt: skip

FLAGS: dict[str, Flag] = {flag.name: flag for flags in GROUPS.values() for flag in flags}


def normalised(arguments: list[str]) -> list[str]:
    """Return arguments in the form that click parses: dashes for underscores, `--v=4` for -v4 and -v=4.

    A switch takes a value only after an equals sign: the next argument is not its value.
    """
    result: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*result, argument, *rest]
        name, equals, value = argument.partition("=")
        if name.startswith("--"):
            name = name.replace("_", "-")
        elif argument.startswith("-v") and argument != "-v":
            name, equals, value = "--v", "=", argument.removeprefix("-v").removeprefix("=")
        flag = FLAGS.get(name.lstrip("-")) if name.startswith("-") and not equals else None
        if flag is not None and flag.type.alone:
            equals, value = "=", flag.type.alone
        result.append(name + equals + value)
        if flag is not None and not flag.type.alone:
            # The next argument is its value, even if it starts with a dash.
            result += islice(rest, 1)
    return result
