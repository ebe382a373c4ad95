"""The paper's numbers and ours beside them: tables, figures, claims, the page. No torch."""
