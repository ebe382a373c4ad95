"""Corpora in the forms in which people have them: read, cleaned, encoded as byte pairs, kept as
shards of tokens. No torch.
"""
