"""`kubestow doctor`: checks a cluster before Kubestow takes kube-scheduler's place in it, and says what to do."""

import sys
from typing import Any

import click

from kubestow.cli.support import feature_gates_option, plugin_option


@click.command("doctor", context_settings={"max_content_width": 120})
@click.option("--kubeconfig", default="", metavar="FILE", help="The cluster, and who the scheduler will be there.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--config", "configuration", metavar="FILE", help="The configuration that the scheduler will have.")
@plugin_option
@feature_gates_option("Feature gates that the scheduler will run with.")
@click.option("--server", default="", metavar="URL", help="The secure port of the kube-scheduler that runs now.")
@click.option("--certificate-authority", default="", metavar="FILE", help="Whom to trust at --server.")
@click.option("--insecure-skip-tls-verify", is_flag=True, help="Trust anybody at --server.")
def command(server: str, certificate_authority: str, insecure_skip_tls_verify: bool, **options: Any) -> None:
    """Check a cluster before the scheduler is changed.

    \b
    kubestow doctor --kubeconfig scheduler.conf --config config.yaml
    kubestow doctor --kubeconfig admin.conf --server https://127.0.0.1:10259 --insecure-skip-tls-verify

    Rights, versions of the API, the clock, who leads now, and what differs from the kube-scheduler at --server.
    Nothing is written. Exit code 1 if something would go wrong, or cannot be checked.
    """
    for flag, given in (
        ("--certificate-authority", certificate_authority),
        ("--insecure-skip-tls-verify", insecure_skip_tls_verify),
    ):
        if given and not server:
            raise click.UsageError(f"{flag}: has no effect without --server")
    # Imported only now: help must not pay for it.
    from kubestow.cli.doctor.checks import Setting
    from kubestow.cli.doctor.process import examine
    from kubestow.insight.explain.scheduler_pages import SchedulerAddress

    address = SchedulerAddress(server, certificate_authority, insecure_skip_tls_verify)
    sys.exit(examine(Setting(server=address, **options)))
