"""Continued texts, zero-shot answers, answers to tasks."""
