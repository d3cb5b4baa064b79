"""The pipeline's peers, each a separate program.

    python -m bench.pipeline.peers.raw_relay SETTINGS
    python -m bench.pipeline.peers.plain_faust SETTINGS FOLDER ROLE

The relay moves a record wherever the pipeline moves one, and does nothing else. The Faust agents do
what the pipeline does, written the way Faust's documentation recommends.
"""
