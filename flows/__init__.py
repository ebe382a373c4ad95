"""Prefect: when and where DVC's stages run. The only package that imports it."""
