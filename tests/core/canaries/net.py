"""Secrets, and the net that has to catch any piece of one."""

import base64
from dataclasses import dataclass, field

PIECE_LENGTH = 12


@dataclass
class Canaries:
    """``secrets``: the part of each that gives power, by its name."""

    secrets: dict[str, str] = field(default_factory=dict)

    def keep(self, name, whole, secret=None):
        self.secrets[name] = secret or whole
        return whole

    def in_text(self, text):
        """The names of those of which a piece stands in the text, in plain, reversed in JSON or encoded."""
        return [
            name for name, secret in self.secrets.items() if any(piece in text for piece in pieces(secret))
        ]


def pieces(secret):
    """Consecutive ones, so that cutting a secret short hides nothing, and the forms it could be kept in."""
    plain = [secret[start : start + PIECE_LENGTH] for start in range(0, len(secret), PIECE_LENGTH)]
    long_enough = [piece for piece in plain if len(piece) == PIECE_LENGTH]
    assert long_enough, "too short to be found by a piece of it"
    encoded = secret.encode()
    return [*long_enough, encoded.hex()[:32], base64.b64encode(encoded).decode()[:20]]


async def everything_kept(connection):
    """All rows of all tables as text; bytes are shown as they are."""
    tables = await connection.fetch(
        "select format('%I.%I', schemaname, tablename) from pg_tables"
        " where schemaname not in ('pg_catalog', 'information_schema')"
    )
    rows = [row for (table,) in tables for row in await connection.fetch(f"select * from {table}")]
    return "\n".join(shown(value) for row in rows for value in row.values())


def shown(value):
    return f"{value.decode('latin-1')} {value.hex()}" if isinstance(value, bytes) else str(value)
