"""Write docs/reference/kube-scheduler.md, which compares flags, endpoints and process with kube-scheduler's."""

from pathlib import Path

from kubestow.cli.scheduler.flags import GROUPS, Flag

PAGE = Path(__file__).parents[1] / "docs/reference/kube-scheduler.md"
OWN_GROUPS = ("Plugin", "Decision", "Tracing")
"""Groups of flags that kube-scheduler does not have."""
LEGACY = ("policy-config-file", "policy-configmap", "policy-configmap-namespace", "use-legacy-policy-config")

SAME = "same"
ENDPOINTS = {
    "/healthz": (SAME, "`leaderElection` with leader election, else `ping`"),
    "/livez": (SAME, "`ping`"),
    "/readyz": (SAME, "`leaderElection`, `shutdown`, `sched-handler-sync`"),
    "/metrics": (
        SAME,
        "[metrics](metrics.md): names, types, labels, buckets; none of Go and API server libraries; no DELETE to reset",
    ),
    "/metrics/resources": (SAME, "requests and limits of every pod; empty unless this instance leads"),
    "/metrics/slis": (SAME, "results of health checks"),
    "/configz": (SAME, "the configuration in use, complete; after a reload the new one"),
    "/flagz": (
        SAME,
        "text; JSON, YAML and, with `CBORServingAndStorage`, CBOR as `Flagz` of config.k8s.io/v1beta1 and v1alpha1",
    ),
    "/statusz": (SAME, "text; JSON, YAML and CBOR as `Statusz`; `goVersion` has the interpreter's version"),
    "/debug/flags/v": (SAME, "PUT of a number sets the verbosity of the log"),
    "/debug/pprof": (
        "differs",
        "`profile`, `heap` and `goroutine` (tasks, threads) in pprof's format, at most 55 s; others are Go-specific",
    ),
    "/version": ("own", "the version, in the format of Kubernetes components"),
    "/debug/decisions": ("own", "[every decision and its reasons](decisions.md)"),
    "/ui": ("own", "with `--ui`, a page that shows the cluster and every decision"),
}
"""How an endpoint compares, and a description, by path."""

INTRODUCTION = """\
# Compared with kube-scheduler

<!-- Written by scripts/kube_scheduler_page.py; change it or src/kubestow/cli/scheduler/flags.py and run it again. -->

What is the same as in kube-scheduler v1.37, and what differs. Decisions are the same, except for those below; the
[plugin pages](plugins/README.md) describe each plugin.

## Decisions

With `InPlacePodVerticalScalingSchedulerPreemption`, a pod whose deferred resize fits waits until the kubelet resizes
it: [DeferredPodScheduling](plugins/DeferredPodScheduling.md) rejects it at Permit. In v1.37.0-rc.1, the attempt fails
before Permit with the error that the pod is in the cache and cannot be assumed, and is repeated after each backoff.

[Pod groups](../explanation/pod-groups.md), off by default, differ where pods share a ResourceClaim, where a binding
fails, and in trees of more than four levels. [DynamicResources](plugins/DynamicResources.md) lists what differs for
devices.

## Endpoints

Served over HTTPS on `--secure-port`, to clients that the API server authorizes for the path; the health pages are open
to all. Responses are HTTP/1.1. A path that does not exist returns 404, as JSON with a list of all paths.

| path | compared | what |
|---|---|---|
"""

PROCESS = """
## The process

| | kube-scheduler | Kubestow |
|---|---|---|
| SIGTERM or SIGINT while leader election is on | exit code 0 | exit code 0 |
| the same with `--leader-elect=false` | exit code 1 | **exit code 0**: it stopped as requested |
| a second signal | exit code 1 at once | the same |
| the lease is lost | exit code 1, `Leaderelection lost` | the same |
| invalid flags or configuration | exit code 1 | the same, with all errors at once |
| bindings in progress when it stops | abandoned | up to 10 seconds to finish |
| the lease when it stops | released | released once all bindings have ended |
| SIGHUP | terminates it | reloads configuration and plugins |
| SIGUSR2 | logs its state, and compares it with the API server | the same |

## Flags

`same`: the same behaviour. `no effect`: accepted, with a warning in the log. `own`: not in kube-scheduler.
"""


def page() -> str:
    """Return the text of the page."""
    rows = "".join(f"| `{path}` | {compared} | {what} |\n" for path, (compared, what) in ENDPOINTS.items())
    return INTRODUCTION + rows + PROCESS + "".join(_table(group, flags) for group, flags in GROUPS.items())


def compared(group: str, flag: Flag) -> tuple[str, str]:
    """Return how a flag compares, and why."""
    if group in OWN_GROUPS:
        return "own", ""
    if flag.name in LEGACY:
        return "own", "kube-scheduler had it up to v1.22"
    if flag.ignored:
        return "no effect", flag.ignored
    return ("differs", flag.differs) if flag.differs else (SAME, "")


def _table(group: str, flags: tuple[Flag, ...]) -> str:
    lines = ["", f"### {group}", "", "| flag | compared | why |", "|---|---|---|"]
    lines += [f"| `--{flag.name}` | {' | '.join(compared(group, flag))} |" for flag in flags]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
