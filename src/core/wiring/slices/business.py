"""Business profiles."""

from datetime import timedelta

from core.wiring.slice import ApiParts, Resources, Slice
from features.business.application.profiles import BusinessProfiles
from features.business.controllers.profiles import BusinessProfilesController
from features.operations.domain.retention import RetentionRule
from infrastructure.database.business.profiles import PostgresProfiles


def _api(resources: Resources) -> ApiParts:
    return ApiParts(dependencies={"profiles": BusinessProfiles(PostgresProfiles(resources.database))})


BUSINESS = Slice(
    name="business",
    controllers=(BusinessProfilesController,),
    retention={"daily-cleanup": (RetentionRule("public.business_profiles", timedelta(days=30)),)},
    api=_api,
)
