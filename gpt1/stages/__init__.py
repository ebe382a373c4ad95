"""One file a verb: read inputs, call rooms, write outputs."""
