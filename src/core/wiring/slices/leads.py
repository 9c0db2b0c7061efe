"""Leads."""

from core.wiring.slice import ApiParts, Resources, Slice
from features.leads.application.leads import Leads
from features.leads.controllers.leads import LeadsController
from infrastructure.database.leads.leads import PostgresLeads


def _api(resources: Resources) -> ApiParts:
    return ApiParts(dependencies={"leads": Leads(PostgresLeads(resources.database))})


LEADS = Slice(
    name="leads",
    controllers=(LeadsController,),
    purged_tables={"daily-cleanup": ("public.leads",)},
    api=_api,
)
