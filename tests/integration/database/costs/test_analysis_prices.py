from infrastructure.database.analysis.prices import REMEMBERED_FOR_S, PostgresPrices
from tests.support import dual_client


async def test_changed_price_applies_within_a_minute(spoilable_addresses):
    now_s = 0.0
    async with dual_client(spoilable_addresses) as database:
        prices = PostgresPrices(database.admin("tests"), now_s=lambda: now_s)
        before = [await prices.credits(name) for name in ("light", "deep", "xray")]
        await database.admin("tests").fetch(
            "update public.analysis_costs set credits = 7 where type = 'deep'"
        )

        remembered = await prices.credits("deep")
        now_s = REMEMBERED_FOR_S
        renewed = await prices.credits("deep")

    assert (before, remembered, renewed) == ([1, 5, 6], 5, 7)
