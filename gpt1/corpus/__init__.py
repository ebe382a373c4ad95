"""Corpora cleaned, encoded, and kept as shards of tokens."""
