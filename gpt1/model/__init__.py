"""The network (paper, sections 3.1 and 4.1) and its weights."""
