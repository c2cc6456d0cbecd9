"""`kubestow doctor`: checks a cluster before Kubestow replaces kube-scheduler in it, and gives advice."""

import sys
from typing import Any

import click

from kubestow.cli.support import feature_gates_option, plugin_option


@click.command("doctor", context_settings={"max_content_width": 120})
@click.option("--kubeconfig", default="", metavar="FILE", help="Cluster to check, and the user of the scheduler.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@plugin_option
@feature_gates_option("Feature gates of the scheduler.")
@click.option("--server", default="", metavar="URL", help="URL of the secure port of the running kube-scheduler.")
@click.option("--certificate-authority", default="", metavar="FILE", help="Certificate authority of --server.")
@click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not verify the certificate of --server.")
def command(server: str, certificate_authority: str, insecure_skip_tls_verify: bool, **options: Any) -> None:
    """Check a cluster before its scheduler is replaced.

    \b
    kubestow doctor --kubeconfig scheduler.conf --config config.yaml
    kubestow doctor --kubeconfig admin.conf --server https://127.0.0.1:10259 --insecure-skip-tls-verify

    Checks permissions, API versions, the clock, the current leader, and the differences from the kube-scheduler at
    --server. Does not write to the cluster. Exits with 1 if there is a problem or a check is not possible.
    """
    for flag, given in (
        ("--certificate-authority", certificate_authority),
        ("--insecure-skip-tls-verify", insecure_skip_tls_verify),
    ):
        if given and not server:
            raise click.UsageError(f"{flag}: has no effect without --server")
    # Imported only now: help must stay fast.
    from kubestow.cli.doctor.checks import Setting
    from kubestow.cli.doctor.process import examine
    from kubestow.insight.explain.scheduler_pages import SchedulerAddress

    address = SchedulerAddress(server, certificate_authority, insecure_skip_tls_verify)
    sys.exit(examine(Setting(server=address, **options)))
