"""The replication article of a finished run, as markdown and LaTeX, from result files alone. No
torch.
"""
