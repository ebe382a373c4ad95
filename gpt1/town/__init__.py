"""The embedded default: a made-up town, its books and its twelve tasks in the official file
formats. Knows nothing of the other rooms.
"""
