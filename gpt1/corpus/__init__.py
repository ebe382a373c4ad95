"""Corpora cleaned, encoded as byte pairs, and kept as shards of tokens."""
