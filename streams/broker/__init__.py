"""A real Kafka without Docker or an installed Java: downloaded, started and stopped by hb."""

from streams.broker.cluster import USER, EmbeddedBroker, data_folder
from streams.broker.jars import Progress
from streams.broker.node import Node

__all__ = ["USER", "EmbeddedBroker", "Node", "Progress", "data_folder"]
