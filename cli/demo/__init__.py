"""The demonstration behind `hb demo`: the whole system on this machine, with WDBC's patients.

`folder.py` is where it runs and with which settings, `supervise.py` the process that supervises its
workers and cleans up, `demonstration.py` the course of events, `summary.py` what came of it.
"""
