"""Transactional tasks: a batch's outputs, state and positions are committed all or nothing."""

from streams.engine.api import AgentSpec, Processor, TaskContext
from streams.engine.config import EngineConfig
from streams.engine.outbox import Outbox
from streams.kafka.batch import Batch

__all__ = ["AgentSpec", "Batch", "EngineConfig", "Outbox", "Processor", "TaskContext"]
