"""The pipeline's peers, each a program of its own.

    python -m bench.pipeline.peers.raw_relay SETTINGS
    python -m bench.pipeline.peers.plain_faust SETTINGS FOLDER ROLE

The relay moves a record wherever the pipeline moves one, and does nothing else. The Faust agents do
what the pipeline does, written as Faust's documentation has it.
"""
