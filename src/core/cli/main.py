"""Entry point of the command line. Each command is in ``core.cli.commands``."""

import click

from core.cli.commands.analyses import analyze_command
from core.cli.commands.billing import billing_group
from core.cli.commands.bulk import bulk_command
from core.cli.commands.cron import cron_group
from core.cli.commands.leads import leads_command
from core.cli.commands.operations import (
    costs_command,
    credits_group,
    health_command,
    migrate_command,
    providers_command,
    token_command,
)
from core.cli.commands.processes import (
    api_group,
    run_command,
    scheduler_command,
    serve_command,
    simulators_command,
    worker_command,
)
from core.cli.commands.runs import runs_group
from core.cli.commands.webhooks import webhooks_group


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oslira")
def main() -> None:
    """Oslira: a backend that sells AI work by credits.

    Without configuration it runs on an embedded PostgreSQL under .data/. Set DATABASE_URL and
    OSLIRA_ENVIRONMENT to use another database; docs/configuration.md lists every variable.
    """


for command in (
    *(analyze_command, bulk_command, leads_command, runs_group, billing_group, webhooks_group),
    *(serve_command, api_group, worker_command, scheduler_command, run_command, simulators_command),
    *(migrate_command, token_command, health_command, providers_command),
    *(costs_command, credits_group, cron_group),
):
    main.add_command(command)


if __name__ == "__main__":
    main()
