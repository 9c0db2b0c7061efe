"""Composition root: the only package that imports every implementation."""
