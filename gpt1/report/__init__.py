"""The paper's numbers, ours beside them, as markdown, CSV and LaTeX. No torch."""
