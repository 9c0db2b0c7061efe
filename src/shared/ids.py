"""Identifiers that cross slice borders. Everything else a slice keeps to itself."""

import re
from typing import NewType
from uuid import UUID

AccountId = NewType("AccountId", UUID)
UserId = NewType("UserId", UUID)
RunId = NewType("RunId", UUID)

# One spelling: without braces, prefixes or missing hyphens, all of which Python would take.
UUID_TEXT = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
