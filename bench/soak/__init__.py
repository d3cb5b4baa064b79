"""Hours of steady load under faults: does anything grow, slow down or drift?"""
