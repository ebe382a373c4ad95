"""The paper's numbers and ours beside them: tables, figures, claims, the page. No torch."""

from gpt1.results.records import load as load
