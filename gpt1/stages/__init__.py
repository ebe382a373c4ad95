"""One file per verb: read inputs, call other packages, write outputs."""
