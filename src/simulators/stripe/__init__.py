"""Simulated Stripe API, as far as billing uses it: prices, payments, subscriptions and their events.

Fields that begin with an underscore are internal to the simulator and never sent.
"""
