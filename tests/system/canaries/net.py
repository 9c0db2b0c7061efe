"""Registry of secrets and search for any piece of them."""

import base64
from dataclasses import dataclass, field

PIECE_LENGTH = 12


@dataclass
class Canaries:
    """``secrets`` maps a name to the sensitive part of the secret."""

    secrets: dict[str, str] = field(default_factory=dict)

    def keep(self, name, whole, secret=None):
        self.secrets[name] = secret or whole
        return whole

    def in_text(self, text):
        """Returns the names of the secrets of which the text contains a piece, plain, in hex or in base64."""
        return [
            name for name, secret in self.secrets.items() if any(piece in text for piece in pieces(secret))
        ]


def pieces(secret):
    """Returns consecutive pieces, so that a truncated secret is found, and the start of its encoded forms."""
    plain = [secret[start : start + PIECE_LENGTH] for start in range(0, len(secret), PIECE_LENGTH)]
    long_enough = [piece for piece in plain if len(piece) == PIECE_LENGTH]
    assert long_enough, "too short to be found by a piece of it"
    encoded = secret.encode()
    return [*long_enough, encoded.hex()[:32], base64.b64encode(encoded).decode()[:20]]


async def everything_kept(connection):
    """Returns all rows of all tables as text; bytes both decoded and in hex."""
    tables = await connection.fetch(
        "select format('%I.%I', schemaname, tablename) from pg_tables"
        " where schemaname not in ('pg_catalog', 'information_schema')"
    )
    rows = [row for (table,) in tables for row in await connection.fetch(f"select * from {table}")]
    return "\n".join(shown(value) for row in rows for value in row.values())


def shown(value):
    return f"{value.decode('latin-1')} {value.hex()}" if isinstance(value, bytes) else str(value)
