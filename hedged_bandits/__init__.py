"""Publish patients and labels on an ensemble of Hedged Bandits, and read diagnoses.

It is the client by a name of its own, which stays the same in the client's own distribution.
"""

from agents.clients import *  # noqa: F403 - whatever it offers
from agents.clients import __all__ as __all__
