from datetime import timedelta

import click

from core.cli.client.runtime import read_surroundings, signs_tokens
from core.wiring.bootstrap import local_issuer

MINUTE_H = 1 / 60
YEAR_H = 8_760.0


def _lifetime(_: click.Context, __: click.Parameter, hours: float) -> timedelta:
    if not MINUTE_H <= hours <= YEAR_H:  # also true for NaN
        raise click.BadParameter(f"from {MINUTE_H:.3f} to {YEAR_H:,.0f} hours")
    return timedelta(hours=hours)


@click.command("token")
@click.argument("email")
@click.option("--operator", is_flag=True, help="May use the administration routes.")
@click.option("--hours", "lifetime", type=float, default=1.0, show_default=True, callback=_lifetime)
def token_command(email: str, operator: bool, lifetime: timedelta) -> None:  # noqa: FBT001
    """Sign an access token for a local user, known by their e-mail address."""
    place = read_surroundings()
    if not signs_tokens(place.settings):
        raise click.ClickException(
            "The identity service signs tokens; only a local environment without one does it itself."
        )
    token = local_issuer(place.settings).token(email, lifetime=lifetime, is_operator=operator)
    click.echo(token)
