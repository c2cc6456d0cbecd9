"""`kubestow capacity`: cluster utilization, and how many more pods fit."""

from typing import Any

import click

from kubestow.cli.support import fail, plugin_option

_SORTS = ("name", "cpu.request", "cpu.limit", "mem.request", "mem.limit")


@click.command("capacity", context_settings={"max_content_width": 120})
@click.option("--podspec", metavar="FILE", multiple=True, help="Pods to place in turn, or a pod group; repeatable.")
@click.option("--cluster", metavar="FILE", multiple=True, help="Files of objects, instead of a live cluster.")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option(
    "--max-limit", "limit", type=click.IntRange(0), default=0, help="Maximum number of pods. [default: as many as fit]"
)
@click.option("--exclude-nodes", metavar="A,B", default="", help="Nodes to exclude.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@plugin_option
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Format, with cluster-capacity's fields.")
@click.option("--verbose", is_flag=True, help="Also show the nodes of the pods.")
@click.option("--pods", "with_pods", is_flag=True, help="Also list the pods of each node.")
@click.option("--sort", type=click.Choice(_SORTS), default="name", help="Order of the rows.", show_default=True)
def command(cluster: tuple[str, ...], kubeconfig: str, context: str, exclude_nodes: str, **options: Any) -> None:
    """Show cluster utilization; with --podspec, how many more pods fit, and why the next one does not.

    \b
    kubestow capacity                                          requested and allocatable resources
    kubestow capacity --podspec pod.yaml                       how many more of this pod fit
    kubestow capacity --podspec pod.yaml --cluster all.yaml    the same without a cluster

    Does not write to the cluster.
    """
    for option, value in (("--kubeconfig", kubeconfig), ("--context", context)):
        if cluster and value:
            raise click.UsageError(f"{option} applies to a live cluster, --cluster to files; give one of them")
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.simulate.capacity_process import Request, report_capacity
    from kubestow.cli.simulate.process import SimulateError

    excluded = tuple(name.strip() for name in exclude_nodes.split(",") if name.strip())
    try:
        report_capacity(Request(cluster=cluster, kubeconfig=kubeconfig, context=context, exclude=excluded, **options))
    except SimulateError as error:
        fail(error)
