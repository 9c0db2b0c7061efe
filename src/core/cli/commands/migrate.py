import click

from core.cli.client.runtime import read_surroundings, run_to_the_end
from core.wiring.bootstrap import apply_migrations, database_addresses
from core.wiring.slice import migration_folders
from core.wiring.slices import SLICES


@click.command("migrate")
def migrate_command() -> None:
    """Bring the database's schema and its prices up to date. Repeatable; safe to race."""
    place = read_surroundings()

    async def work() -> tuple[list[str], int]:
        async with database_addresses(place.settings) as addresses:
            if not addresses.owner:
                raise click.ClickException("Set DATABASE_URL to the address of the tables' owner.")
            return await apply_migrations(place.settings, addresses, migration_folders(SLICES))

    names, prices_count = run_to_the_end(work())
    for name in names:
        click.echo(f"applied {name}")
    if not names:
        click.echo("The schema is up to date.")
    if prices_count:
        click.echo(f"added {prices_count} prices")
