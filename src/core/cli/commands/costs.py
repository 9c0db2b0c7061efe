import click

from core.cli.client.runtime import console, read_surroundings, run_to_the_end
from core.cli.output.cost_table import cost_table
from core.wiring.application import build
from features.costs.application.reports import DAYS_DEFAULT, DAYS_MAX, CostReports, Report
from features.costs.domain.reports import CostLine


@click.command("costs")
@click.option("--days", type=click.IntRange(1, DAYS_MAX), default=DAYS_DEFAULT, show_default=True)
def costs_command(days: int) -> None:
    """Show what providers have charged in the last days, by model and task."""
    place = read_surroundings()

    async def work() -> Report[CostLine]:
        async with build(place) as application:
            return await application.get(CostReports).last_days(days)

    report = run_to_the_end(work())
    if not report.lines:
        click.echo(f"Nobody was called in the last {days} days.")
        return
    console.print(cost_table(report.lines, days))
    if not report.is_complete:
        click.echo("There is more: ask for fewer days.")
