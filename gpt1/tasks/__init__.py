"""The paper's twelve tasks: their files, inputs (Figure 1) and metrics."""
