"""The balance read as most people would write it today: FastAPI, pydantic, SQLAlchemy's ORM, PyJWT.

Same database, same login role, same row level security, same answer. Everything that is not per request
is done once: the key is parsed, the engine pools 16 connections, nothing runs in a thread.
"""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from fastapi import Depends, FastAPI, HTTPException, status
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import BigInteger, DateTime, func, make_url, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

DATABASE_URL = make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+asyncpg")
PUBLIC_KEY = load_pem_public_key(os.environ["JWT_PUBLIC_KEY"].encode())
ISSUER = os.environ["JWT_ISSUER"]
AUDIENCE = os.environ["JWT_AUDIENCE"]

engine = create_async_engine(DATABASE_URL, pool_size=16, max_overflow=0)
sessions = async_sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Membership(Base):
    __tablename__ = "memberships"

    account_id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    role: Mapped[str]


class CreditAccount(Base):
    __tablename__ = "credit_accounts"

    account_id: Mapped[UUID] = mapped_column(primary_key=True)
    credits_available: Mapped[int] = mapped_column(BigInteger)
    credits_held: Mapped[int] = mapped_column(BigInteger)
    next_lapse_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class BalanceOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    account_id: UUID
    credits_available: int
    credits_held: int
    next_expiry_at: datetime | None = Field(validation_alias="next_lapse_at")


Bearer = Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]


async def verified_claims(bearer: Bearer) -> dict[str, Any]:
    try:
        return jwt.decode(
            bearer.credentials,
            PUBLIC_KEY,
            algorithms=["ES256"],
            issuer=ISSUER,
            audience=AUDIENCE,
            leeway=timedelta(seconds=30),
            options={"require": ["exp", "iat", "sub", "aud", "iss"]},
        )
    except jwt.PyJWTError:
        raise HTTPException(status.HTTP_401_UNAUTHORIZED, "The token is not valid.") from None


Claims = Annotated[dict[str, Any], Depends(verified_claims)]


async def caller_session(claims: Claims) -> AsyncGenerator[AsyncSession]:
    """One transaction per request, as the caller: row level security decides what it sees."""
    async with sessions() as session, session.begin():
        await session.execute(select(func.set_config("request.jwt.claims", json.dumps(claims), True)))
        yield session


Session = Annotated[AsyncSession, Depends(caller_session)]


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    yield
    await engine.dispose()


# No telemetry, because the other side has none.
app = FastAPI(lifespan=lifespan, telemetry={"tracing": False, "metrics": False, "logs": False})


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/v1/credits/balance", response_model=BalanceOut)
async def balance(claims: Claims, session: Session) -> CreditAccount:
    accounts = await session.scalars(
        select(CreditAccount)
        .join(Membership, Membership.account_id == CreditAccount.account_id)
        .where(Membership.user_id == UUID(claims["sub"]))
        .limit(2)
    )
    match accounts.all():
        case [account]:
            return account
        case _:
            raise HTTPException(status.HTTP_409_CONFLICT, "You belong to no account, or to several.")
