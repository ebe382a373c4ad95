"""Corpora: the forms in which people have text, read in bounded memory, and what a corpus is
recognised as. No torch.
"""
