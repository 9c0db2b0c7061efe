"""Pages of leads, and the text of the CSV export."""

import csv
import io
from collections.abc import AsyncIterator

import msgspec

from features.leads.domain.leads import CSV_COLUMNS, Lead, LeadAnalysis, csv_cells


class LeadsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[Lead]
    next_cursor: str | None


class LeadAnalysesResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[LeadAnalysis]
    next_cursor: str | None


async def csv_text(chunks: AsyncIterator[list[Lead]]) -> AsyncIterator[str]:
    yield _csv_lines([CSV_COLUMNS])
    async for chunk in chunks:
        yield _csv_lines([csv_cells(lead) for lead in chunk])


def _csv_lines(rows: list[tuple[str, ...]]) -> str:
    lines = io.StringIO()
    csv.writer(lines).writerows(rows)
    return lines.getvalue()
