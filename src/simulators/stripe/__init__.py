"""Simulated Stripe API, as far as billing uses it: products, customers, payments and their events.

Documents are stored in the format of the newest API version; ``http.api_versions`` converts them to an older
one. Fields that begin with an underscore are internal to the simulator and never sent.
"""
