"""Prefect: when and where DVC's stages run."""
