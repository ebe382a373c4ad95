"""Statistics behind the verdicts, pure: intervals over pre-training seeds and examples, tests of
claims, orders, and what a design could see.
"""
