"""Entry point of the command line. Each command is in ``core.cli.commands``."""

import click

from core.cli.commands.analyses import analyze_command
from core.cli.commands.billing import billing_group
from core.cli.commands.bulk import bulk_command
from core.cli.commands.costs import costs_command
from core.cli.commands.credits import credits_group
from core.cli.commands.cron import cron_group
from core.cli.commands.health import health_command, providers_command
from core.cli.commands.leads import leads_command
from core.cli.commands.migrate import migrate_command
from core.cli.commands.processes import (
    api_command,
    run_command,
    scheduler_command,
    serve_command,
    simulators_command,
    worker_command,
)
from core.cli.commands.runs import runs_group
from core.cli.commands.tokens import token_command
from core.cli.commands.webhooks import webhooks_group


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oslira")
def main() -> None:
    """Oslira: a backend that sells AI work by credits.

    Without any configuration it runs on a PostgreSQL of its own under .data/.
    Set DATABASE_URL and OSLIRA_ENVIRONMENT for another one; docs/configuration.md lists every variable.
    """


for command in (
    analyze_command,
    api_command,
    billing_group,
    bulk_command,
    costs_command,
    credits_group,
    cron_group,
    health_command,
    leads_command,
    migrate_command,
    providers_command,
    run_command,
    runs_group,
    scheduler_command,
    serve_command,
    simulators_command,
    token_command,
    webhooks_group,
    worker_command,
):
    main.add_command(command)


if __name__ == "__main__":
    main()
