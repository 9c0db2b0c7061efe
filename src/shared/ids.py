"""Identifiers and value types that more than one slice uses."""

import re
from typing import Literal, NewType
from uuid import UUID

AccountId = NewType("AccountId", UUID)
UserId = NewType("UserId", UUID)
RunId = NewType("RunId", UUID)
BusinessProfileId = NewType("BusinessProfileId", UUID)
LeadId = NewType("LeadId", UUID)

Platform = Literal["instagram"]
AnalysisType = Literal["light", "deep", "xray"]
Tier = Literal["hot", "warm", "cool", "cold"]

# Accept one spelling only: Python also accepts braces, prefixes and missing hyphens.
UUID_TEXT = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
