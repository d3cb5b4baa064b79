"""The demonstration behind `hb demo`: the whole system on this machine, with WDBC's patients.

`place.py` is where it runs and with which settings, `keeper.py` the process that supervises its
workers and cleans up, `run.py` the course of events, `story.py` what came of it.
"""
