"""One file a verb: read inputs, call rooms, write outputs. Stages meet through `data/<stage>/` and
never import one another.
"""
