"""`kubestow explain`: what became of a pod and why, where a pod would go, and what would have to change.

With -f or --cluster it is a dry run: every node is judged by the scheduler's own engine, and nothing is written.
"""

from typing import TYPE_CHECKING, Any

import click

from kubestow.cli.support import fail, feature_gates_option, plugin_option

if TYPE_CHECKING:
    from kubestow.config import Features


@click.command("explain", context_settings={"max_content_width": 120})
@click.argument("pod", metavar="[NAMESPACE/]POD|podgroup/NAME", required=False)
@click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    help="Pods to try, one after the other: a file, a folder or - for standard input; repeatable.",
)
@click.option(
    "--cluster",
    metavar="FILE",
    multiple=True,
    help="The cluster as objects in a file, such as `kubectl get -A -o json` writes them, instead of a live one.",
)
@click.option(
    "--config",
    "configuration",
    metavar="FILE",
    help="Configuration of the scheduler, for a dry run; else the one that the running scheduler tells.",
)
@plugin_option
@feature_gates_option("Feature gates that the scheduler runs with, for a dry run; else those that it tells.")
@click.option("--extenders", is_flag=True, help="Ask the extenders of the configuration in a dry run, too.")
@click.option("-n", "--namespace", default="", help="Namespace of the pod.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "wide"]), help="Other forms than one screen.")
@click.option("--node", default="", help="Explain this node only.")
@click.option("--against", default="", metavar="NODE", help="What it would take for the pod to land there instead.")
@click.option("-w", "--watch", is_flag=True, help="Explain again whenever something has changed.")
@click.option("--kubeconfig", default="", metavar="FILE", help="Which cluster, and who asks.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--server", default="", metavar="URL", help="The scheduler's secure port, such as https://HOST:10259.")
@click.option("--certificate-authority", default="", metavar="FILE", help="Whom to trust at --server.")
@click.option("--insecure-skip-tls-verify", is_flag=True, help="Trust anybody at --server.")
def command(
    pod: str | None,
    features: "Features",
    server: str,
    certificate_authority: str,
    insecure_skip_tls_verify: bool,
    **options: Any,
) -> None:
    """Explain a scheduling decision: what happened, why not elsewhere, and what would help.

    \b
    kubestow explain shop/web-0                                 a pod of the live cluster
    kubestow explain podgroup/train -n ml                       a pod group: where it was tried, what it lacks
    kubestow explain -f pod.yaml                                where a pod would go
    kubestow explain -f pod.yaml --cluster objects.yaml         the same without a cluster

    Nothing is ever written.
    """
    # Imported only now: help and usage errors must not pay for an engine.
    from kubestow.cli.explain.process import Request, explain
    from kubestow.insight.explain.scheduler_pages import SchedulerAddress
    from kubestow.insight.explain.world import ExplainError

    scheduler = SchedulerAddress(server, certificate_authority, insecure_skip_tls_verify)
    is_given = click.get_current_context().get_parameter_source("features") is click.core.ParameterSource.COMMANDLINE
    request = Request(pod=pod or "", features=features if is_given else None, server=scheduler, **options)
    if bool(pod) == bool(request.files):
        raise click.UsageError(f"name a pod, or give one with -f{', not both' if pod else ''}")
    if (*request.files, *request.cluster).count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once; name a file instead")
    for option, value in (
        ("--server", server),
        ("--certificate-authority", certificate_authority),
        ("--kubeconfig", request.kubeconfig),
        ("--context", request.context),
    ):
        if request.cluster and value:
            raise click.UsageError(f"{option} is about a live cluster, --cluster about files; give one of them")
    if request.cluster and request.watch:
        raise click.UsageError("--watch needs a live cluster: files do not change")
    try:
        explain(request)
    except ExplainError as error:
        fail(error)
