NEW_PROFILE = """
insert into public.business_profiles (account_id, id, name, created_by)
values ($1, gen_random_uuid(), 'Alpine Coffee', 'user:x')
"""
