"""Where a checkout stands: what is current, what would run and why, what runs now, what failed.
Reads only.
"""
