"""A real Kafka without Docker and without an installed Java: fetched, started and stopped by hb."""

from streams.broker.cluster import EmbeddedBroker, data_folder
from streams.broker.jars import Progress
from streams.broker.node import Node

__all__ = ["EmbeddedBroker", "Node", "Progress", "data_folder"]
