"""Business profiles."""

from core.wiring.slice import ApiParts, Resources, Slice
from features.business.application.profiles import BusinessProfiles
from features.business.controllers.profiles import BusinessProfilesController
from infrastructure.database.business.profiles import PostgresProfiles


def _api(resources: Resources) -> ApiParts:
    return ApiParts(dependencies={"profiles": BusinessProfiles(PostgresProfiles(resources.database))})


BUSINESS = Slice(
    name="business",
    controllers=(BusinessProfilesController,),
    purged_tables={"daily-cleanup": ("public.business_profiles",)},
    api=_api,
)
