"""Transactional tasks: each batch of records in, its outputs and state out, all or nothing."""

from streams.tasks.batch import Batch
from streams.tasks.config import EngineConfig
from streams.tasks.outbox import Outbox
from streams.tasks.processor import AgentSpec, Processor, TaskContext

__all__ = ["AgentSpec", "Batch", "EngineConfig", "Outbox", "Processor", "TaskContext"]
