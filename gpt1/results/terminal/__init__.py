"""What a terminal is shown: text without control characters, tables that fit its width, colours
where they are wanted.
"""
