"""Preparation of every statement against the migrated schema: a misspelt column fails here."""

import importlib
import pkgutil

import pytest

import infrastructure.database as package

STATEMENTS = {
    f"{module.name}.{name}": value
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    for name, value in vars(importlib.import_module(module.name)).items()
    if name.isupper()
    and isinstance(value, str)
    and value.lstrip().startswith(("select", "insert", "update", "delete"))
}


@pytest.mark.parametrize("name", STATEMENTS)
async def test_the_statement_fits_the_schema(owner, name):
    prepared = await owner.prepare(STATEMENTS[name])

    assert prepared.get_query() == STATEMENTS[name]
