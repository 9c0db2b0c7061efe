"""File of unsent e-mail: one line of JSON each, so that a developer can open the link."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger("outbox")


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    to: str
    subject: str
    link: str
    at: datetime


class Outbox:
    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, to: str, *, subject: str, link: str) -> None:
        mail = Mail(to=to, subject=subject, link=link, at=datetime.now(UTC))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(mail) + b"\n")
        log.info("mail", to=to, subject=subject, link=link)
