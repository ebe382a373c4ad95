"""Files for GLUE's leaderboard: made of a run's results, and checked for what its server
refuses.
"""
