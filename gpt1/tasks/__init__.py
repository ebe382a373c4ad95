"""The twelve tasks of the paper: their files, their inputs (Figure 1) and their metrics."""
