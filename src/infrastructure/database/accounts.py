from typing import LiteralString

from features.auth.application.ports import SignUps
from infrastructure.database.sessions import AdminSession
from shared.ids import AccountId, UserId

FIRST_SIGHT: LiteralString = "select private.first_sight($1, $2, $3) as account_id"


class PostgresSignUps(SignUps):
    def __init__(self, session: AdminSession) -> None:
        self._session = session

    async def first_sight(self, user_id: UserId, *, account_name: str, bonus_credits: int) -> AccountId:
        (row,) = await self._session.fetch(FIRST_SIGHT, user_id, account_name, bonus_credits)
        return AccountId(row["account_id"])
