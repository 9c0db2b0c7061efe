"""Start and end of every command: settings, event loop, and errors as one sentence."""

import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import click
import uvloop
from rich.console import Console

from core.settings.settings import InvalidSettings, Settings
from core.wiring.bootstrap import Runtime, read_runtime, start_logs
from shared.errors import DomainError

T = TypeVar("T")
WIDTH = 140  # if the output is not a terminal
console = Console(width=None if sys.stdout.isatty() else WIDTH)
# Remarks and progress go to stderr, because another program may read stdout.
error_console = Console(stderr=True, width=None if sys.stderr.isatty() else WIDTH)


def load_runtime(log_level: int = logging.INFO, **overrides: object) -> Runtime:
    """Reads the settings with the options as overrides. Raises ClickException with all errors."""
    options = {name: str(value) for name, value in overrides.items() if value is not None}
    try:
        loaded = read_runtime({**os.environ, **options})
    except InvalidSettings as error:
        raise click.ClickException(str(error)) from None
    start_logs(loaded.settings, level=log_level)
    return loaded


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Shows errors that an operator can fix without a traceback."""
    try:
        return uvloop.run(work)
    except DomainError as error:
        reason = f" ({error.__cause__})" if error.__cause__ else ""
        raise click.ClickException(f"{error}{reason}") from error
    except (RuntimeError, InvalidSettings) as error:
        raise click.ClickException(str(error)) from error


def signs_tokens(settings: Settings) -> bool:
    """True if the server on this machine accepts tokens that the command signs."""
    return settings.is_local and settings.identity.signs_locally
