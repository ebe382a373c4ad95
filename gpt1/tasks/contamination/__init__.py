"""Contamination: which texts of the tasks stand in the corpus, by runs of words that both have. No
torch.
"""
