"""Logs and results of runs, and how MLflow learns of them."""
