"""Stripe on the wire, as far as billing uses it: what it sells, who pays, and the events that say so.

Documents are kept in the form of the newest API version; ``shapes`` tells them in an older one. Names that
begin with an underscore are the simulator's own and are never told.
"""
