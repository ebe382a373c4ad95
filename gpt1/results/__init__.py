"""The paper's numbers and ours beside them. No torch."""

from gpt1.results.runs import load as load
