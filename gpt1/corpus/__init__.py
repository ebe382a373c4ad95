"""Corpora read, cleaned, encoded as byte pairs, and kept as shards of tokens. No torch."""
