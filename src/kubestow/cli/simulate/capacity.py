"""`kubestow capacity`: how full a cluster is, and how many more of a pod fit."""

from typing import Any

import click

from kubestow.cli.support import fail, plugin_option

_SORTS = ("name", "cpu.request", "cpu.limit", "mem.request", "mem.limit")


@click.command("capacity", context_settings={"max_content_width": 120})
@click.option("--podspec", metavar="FILE", multiple=True, help="Pods to fit in, in turns, or a pod group; repeatable.")
@click.option("--cluster", metavar="FILE", multiple=True, help="Objects in files, instead of a live cluster.")
@click.option("--kubeconfig", default="", metavar="FILE", help="Which cluster, and who asks.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option(
    "--max-limit", "limit", type=click.IntRange(0), default=0, help="At most so many pods. [default: as many as fit]"
)
@click.option("--exclude-nodes", metavar="A,B", default="", help="Nodes that are left out.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@plugin_option
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="cluster-capacity's fields.")
@click.option("--verbose", is_flag=True, help="Also tell which nodes the pods go to.")
@click.option("--pods", "with_pods", is_flag=True, help="Also list pods under their nodes.")
@click.option("--sort", type=click.Choice(_SORTS), default="name", help="Order of the rows.", show_default=True)
def command(cluster: tuple[str, ...], kubeconfig: str, context: str, exclude_nodes: str, **options: Any) -> None:
    """Tell how full a cluster is; with --podspec, how many more pods fit, and what stops the next one.

    \b
    kubestow capacity                                          requests against what nodes have
    kubestow capacity --podspec pod.yaml                       how many more of a pod fit
    kubestow capacity --podspec pod.yaml --cluster all.yaml    the same without a cluster

    Nothing is written to the cluster.
    """
    for option, value in (("--kubeconfig", kubeconfig), ("--context", context)):
        if cluster and value:
            raise click.UsageError(f"{option} is about a live cluster, --cluster about files; give one of them")
    # Imported only now: help and usage errors must not pay for an engine.
    from kubestow.cli.simulate.capacity_process import Request, tell
    from kubestow.cli.simulate.process import SimulateError

    excluded = tuple(name.strip() for name in exclude_nodes.split(",") if name.strip())
    try:
        tell(Request(cluster=cluster, kubeconfig=kubeconfig, context=context, exclude=excluded, **options))
    except SimulateError as error:
        fail(error)
