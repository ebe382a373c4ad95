"""What a run will take, said beforehand: time, memory, disk, energy and cost, here and on named
machines; and beside it what it took.
"""
