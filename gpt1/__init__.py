"""GPT-1 (Radford et al. 2018) as a pipeline that anyone can re-run."""
