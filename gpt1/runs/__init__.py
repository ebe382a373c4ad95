"""How stages of DVC's graph are run: which, when, where, side by side; in this checkout, in
worktrees, on other machines. No Prefect.
"""
