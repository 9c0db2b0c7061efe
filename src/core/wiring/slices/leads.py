"""Leads."""

from datetime import timedelta

from core.wiring.slice import ApiParts, Resources, Slice
from features.leads.application.leads import Leads
from features.leads.controllers.leads import LeadsController
from features.operations.domain.retention import RetentionRule
from infrastructure.database.leads.leads import PostgresLeads


def _api(resources: Resources) -> ApiParts:
    return ApiParts(dependencies={"leads": Leads(PostgresLeads(resources.database))})


LEADS = Slice(
    name="leads",
    controllers=(LeadsController,),
    retention={"daily-cleanup": (RetentionRule("public.leads", timedelta(days=30)),)},
    api=_api,
)
