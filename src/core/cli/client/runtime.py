"""What every command begins with and ends by: settings read, work run, refusals told in a sentence."""

import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import click
import uvloop
from rich.console import Console

from core.settings.settings import InvalidSettings, Settings
from core.wiring.bootstrap import Runtime, runtime, start_logs
from shared.errors import DomainError

T = TypeVar("T")
WIDTH = 140  # where nobody's window decides
console = Console(width=None if sys.stdout.isatty() else WIDTH)
# Remarks and progress: what is printed on the other one may be a program's input.
notes = Console(stderr=True, width=None if sys.stderr.isatty() else WIDTH)


def read_surroundings(log_level: int = logging.INFO, **overrides: object) -> Runtime:
    """Read the settings, let options outrank them, and say plainly what is wrong."""
    given = {name: str(value) for name, value in overrides.items() if value is not None}
    try:
        place = runtime({**os.environ, **given})
    except InvalidSettings as refusal:
        raise click.ClickException(str(refusal)) from None
    start_logs(place.settings, level=log_level)
    return place


def run_to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What an operator can do something about is told without a traceback."""
    try:
        return uvloop.run(work)
    except DomainError as error:
        reason = f" ({error.__cause__})" if error.__cause__ else ""
        raise click.ClickException(f"{error}{reason}") from error
    except (RuntimeError, InvalidSettings) as error:
        raise click.ClickException(str(error)) from error


def signs_tokens(settings: Settings) -> bool:
    """Whether this machine's own server accepts tokens that we sign ourselves."""
    return settings.is_local and settings.identity.signs_locally
