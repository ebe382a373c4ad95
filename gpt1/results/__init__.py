"""The paper's numbers and ours beside them: tables, figures, claims, the page. No torch."""

from gpt1.results.runs import load as load
