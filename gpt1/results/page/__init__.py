"""The report page: every result of a run on one self-contained page, from result files alone. No
torch.
"""
