"""What may be wrong with a machine or a checkout, before a run finds out, each with the way out.
Reads only.
"""
