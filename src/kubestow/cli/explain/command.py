"""`kubestow explain`: the result for a pod and its reasons, where a pod would be placed, and what would help.

With -f or --cluster it is a dry run: the scheduler's own engine evaluates every node, and nothing is written.
"""

from typing import TYPE_CHECKING, Any

import click

from kubestow.cli.support import CommandError, feature_gates_option, plugin_option, poll_data_option

if TYPE_CHECKING:
    from kubestow.cli.explain.request import Request
    from kubestow.config import Features


@click.command("explain", context_settings={"max_content_width": 120})
@click.argument("pod", metavar="[[NAMESPACE/]POD|KIND/NAME]", required=False)
@click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    help="Pods to try in order: a file, a folder or - for standard input; repeatable.",
)
@click.option(
    "--cluster",
    metavar="FILE",
    multiple=True,
    help="File with the objects of a cluster, as written by `kubectl get -A -o json`, instead of a live cluster.",
)
@click.option(
    "--config",
    "configuration",
    metavar="FILE",
    help="Configuration of the scheduler for a dry run. [default: that of the running scheduler]",
)
@plugin_option
@poll_data_option
@feature_gates_option("Feature gates of the scheduler for a dry run. [default: those of the running scheduler]")
@click.option("--extenders", is_flag=True, help="Call the extenders of the configuration in a dry run.")
@click.option("-n", "--namespace", default="", help="Namespace of the pods.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Pending pods of all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Pending pods with these labels only.")
@click.option(
    "--what-if-node",
    default="",
    metavar="KIND",
    help="Pending pods that one more node would let in: like this node, of this instance type, or of each kind (all).",
)
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "wide"]), help="Output format.")
@click.option("--node", default="", help="Explain this node only.")
@click.option("--against", default="", metavar="NODE", help="Show what would place the pod on this node.")
@click.option("--patch", is_flag=True, help="Print kubectl commands for the first suggestion only.")
@click.option("-w", "--watch", is_flag=True, help="Explain again after each change.")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--server", default="", metavar="URL", help="The scheduler's secure port, such as https://HOST:10259.")
@click.option("--certificate-authority", default="", metavar="FILE", help="Certificate authority of --server.")
@click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not verify the certificate of --server.")
def command(
    pod: str | None,
    features: "Features",
    server: str,
    certificate_authority: str,
    insecure_skip_tls_verify: bool,
    **options: Any,
) -> None:
    """Explain a scheduling decision: the result, why other nodes were rejected, and what would help.

    \b
    kubestow explain -A                                         all pending pods, by owner and cause
    kubestow explain deployment/web -n shop                     the pending pods of a deployment
    kubestow explain shop/web-0                                 a pod of the live cluster
    kubestow explain shop/web-0 --patch                         the commands for the first suggestion
    kubestow explain podgroup/train -n ml                       a pod group: where it was tried, what is missing
    kubestow explain -f pod.yaml                                where a pod would be placed
    kubestow explain -f pod.yaml --cluster objects.yaml         the same without a cluster

    Does not write to the cluster.
    """
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.explain.process import explain
    from kubestow.cli.explain.request import Request
    from kubestow.insight.explain.scheduler_pages import SchedulerAddress
    from kubestow.insight.explain.world import ExplainError

    scheduler = SchedulerAddress(server, certificate_authority, insecure_skip_tls_verify)
    is_given = click.get_current_context().get_parameter_source("features") is click.core.ParameterSource.COMMANDLINE
    request = Request(pod=pod or "", features=features if is_given else None, server=scheduler, **options)
    if pod and request.files:
        raise click.UsageError("name a pod, or give one with -f, not both")
    _check_overview(request)
    if (*request.files, *request.cluster).count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once; name a file instead")
    for option, value in (
        ("--server", server),
        ("--certificate-authority", certificate_authority),
        ("--kubeconfig", request.kubeconfig),
        ("--context", request.context),
    ):
        if request.cluster and value:
            raise click.UsageError(f"{option} applies to a live cluster, --cluster to files; give one of them")
    if request.cluster and request.watch:
        raise click.UsageError("--watch needs a live cluster: files do not change")
    try:
        explain(request)
    except ExplainError as error:
        raise CommandError(str(error)) from None


def _check_overview(request: "Request") -> None:
    """Raise a usage error for options of a single pod with an overview, or the other way round."""
    single = {"--node": request.node, "--against": request.against}
    several = {"-A": request.all_namespaces, "--selector": request.selector, "--what-if-node": request.what_if_node}
    for option, value in (single if request.is_overview else several).items():
        if value:
            what = "one pod: name it" if request.is_overview else "pending pods: name no pod"
            raise click.UsageError(f"{option} applies to {what}")
    for option, value in (("-o", request.output), ("--against", request.against), ("--node", request.node)):
        if request.patch and value:
            raise click.UsageError(f"give --patch or {option}, not both")
    if request.patch and request.group:
        raise click.UsageError("--patch applies to pods and their owners, not to pod groups")
    if request.all_namespaces and request.namespace:
        raise click.UsageError("give --namespace or -A, not both")
