"""Identifiers that cross slice borders. Everything else a slice keeps to itself."""

from typing import NewType
from uuid import UUID

AccountId = NewType("AccountId", UUID)
UserId = NewType("UserId", UUID)
