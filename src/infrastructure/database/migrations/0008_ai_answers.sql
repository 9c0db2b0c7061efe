-- Answers of models, so that the same question of the same account within a day is not paid for twice.
-- Tenants see their analyses, never this.

create table public.ai_answers (
    account_id uuid not null references public.accounts (id) on delete cascade,
    answer_key bytea not null check (octet_length(answer_key) = 32),
    answer bytea not null check (octet_length(answer) <= 1048576),
    is_compressed boolean not null,  -- zstd
    provider text not null check (length(provider) <= 100),
    model text not null check (length(model) <= 200),
    is_simulated boolean not null,
    created_at timestamptz not null default statement_timestamp(),
    expires_at timestamptz not null,
    primary key (account_id, answer_key)
);

create index ai_answers_by_expiry on public.ai_answers (expires_at);

alter table public.ai_answers enable row level security;
alter table public.ai_answers force row level security;
revoke all on public.ai_answers from public, anon, authenticated, service_role;
grant select, insert, update, delete on public.ai_answers to service_role;
