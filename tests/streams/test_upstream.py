"""What the engine leans on inside Faust and aiokafka; an upgrade that changes it fails here."""

import asyncio
import inspect

import faust
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, admin
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer import fetcher, group_coordinator
from aiokafka.errors import ProducerFenced
from aiokafka.producer import message_accumulator, sender, transaction_manager
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from faust.tables import recovery
from faust.transport import by_url, conductor
from faust.transport import consumer as faust_consumer
from faust.transport.drivers import aiokafka as driver
from faust.web import base
from mode import Service, threads

from bench.hostile import wire
from streams.faust.transport import Transport
from streams.kafka.client import record_batches
from tests.streams.engine_kit import PATIENCE, config, create_topics, ids, produce, spec


def source(thing):
    return inspect.getsource(thing)


def test_faust_finds_the_transport_by_its_entry_point():
    assert by_url("hb://localhost:9092") is Transport
    assert by_url("kafka://localhost:9092") is driver.Transport


def test_faust_asks_the_consumer_for_batches_the_way_the_transport_answers():
    waiting = source(faust_consumer.Consumer._wait_next_records)
    assert "self._getmany(" in waiting
    getmany = source(faust_consumer.Consumer.getmany)
    assert "self.scheduler.iterate(records)" in getmany
    assert "to_message = self._to_message" in getmany
    assert "self.highwater(tp)" in getmany
    assert "await self.perform_seek()" in getmany
    assert "self.seek_to_committed()" in source(faust_consumer.Consumer.perform_seek)
    assert "self._fetch_records" in source(driver.AIOKafkaConsumerThread.getmany)
    assert "self._create_worker_consumer(" in source(driver.AIOKafkaConsumerThread._create_consumer)
    assert "self._new_consumer_thread()" in source(faust_consumer.ThreadDelegateConsumer.__init__)


def test_faust_reaches_its_consumer_only_by_calls_that_need_no_thread():
    """So it can run in the worker's own loop."""
    assert "self._consumer.stop()" in source(driver.AIOKafkaConsumerThread.on_thread_stop)
    assert "cast_thread" not in source(driver.AIOKafkaConsumerThread)
    assert "self._default_start()" in source(threads.ServiceThread._serve)
    for step in ("children", "futures", "exit_stacks"):
        assert f"self._default_stop_{step}()" in source(threads.ServiceThread._shutdown_thread)
        assert f"self._stop_{step}()" in source(Service.stop)


def test_the_admin_client_asks_any_broker_and_gives_up_if_that_one_is_down():
    asked = source(admin.AIOKafkaAdminClient._send_request)
    assert "node_id = self._client.get_random_node()" in asked
    assert "return await self._client.send(node_id, request)" in asked


def test_faust_drops_what_it_believes_to_be_old():
    """So batch topics are kept out of its note of read offsets, which it binds once."""
    drain = source(faust_consumer.Consumer._drain_messages)
    assert "self._read_offset.__getitem__" in drain
    assert "self._read_offset.__setitem__" in drain
    assert "offset >= r_offset" in drain


def test_faust_seeks_after_each_rebalance_and_before_the_flow_starts():
    resume = source(recovery.Recovery._resume_streams)
    assert resume.index("consumer.perform_seek()") < resume.index("consumer.resume_flow()")
    assert "stop_flow" in source(faust.App._on_partitions_revoked)
    assert "flow_control.clear" in source(faust.App._on_partitions_revoked)


def test_faust_raises_for_a_partition_without_a_callback():
    assert "self._tp_to_callback.__getitem__" in source(
        conductor.Conductor._compile_message_handler
    )


def test_faust_reads_uncommitted_unless_told():
    """So the transport makes its own aiokafka consumer."""
    code = source(driver.AIOKafkaConsumerThread._create_worker_consumer)
    assert 'isolation_level: str = "read_uncommitted"' in code


def test_faust_serves_tables_and_listens_everywhere_unless_told():
    assert ("/table", "faust.web.apps.tables.blueprint") in list(base.DEFAULT_BLUEPRINTS)
    names = ("default", "production", "debug", "optional")
    assert all(hasattr(base.Web, f"{name}_blueprints") for name in names)


def test_an_empty_set_of_partitions_means_all_to_aiokafka():
    assert "if partitions and tp not in partitions" in source(fetcher.Fetcher.fetched_records)


def test_the_producer_has_the_parts_that_are_replaced():
    parameters = inspect.signature(sender.Sender.__init__).parameters
    assert set(parameters) == {
        "self",
        "client",
        "acks",
        "txn_manager",
        "message_accumulator",
        "retry_backoff_ms",
        "request_timeout_ms",
    }
    assert "self._do_add_partitions_to_txn(tps)" in source(
        sender.Sender._maybe_do_transactional_request
    )
    assert "return BACKOFF_OVERRIDE" in source(sender.AddPartitionsToTxnHandler.handle_response)


def test_every_request_passes_the_clients_send_and_its_errors_are_kept():
    """So answers can be noted there, and `Fetching.check` finds what has ended."""
    assert "await self._client.send(" in source(group_coordinator.GroupCoordinator._send_req)
    assert "await self._client.send(" in source(fetcher.Fetcher._proc_fetch_request)
    checked = source(group_coordinator.GroupCoordinator.check_errors)
    assert "self._coordination_task.result()" in checked
    assert "self._pending_exception" in checked
    assert "self._fetch_task = create_task(" in source(fetcher.Fetcher.__init__)


def test_the_producer_sends_a_request_again_that_was_not_answered():
    """So requests about transactions have handlers of their own, and the producer ends instead."""
    sent = source(sender.BaseHandler.do)
    assert "self._sender.client.send(node_id, req, group=self.group)" in sent
    assert "Errors.RequestTimedOutError" in sent
    assert "return False" in sent
    assert "handler = EndTxnHandler(self, commit_result)" in source(sender.Sender._do_txn_commit)
    assert "self._do_txn_commit(commit_result)" in source(
        sender.Sender._maybe_do_transactional_request
    )
    for part in ("fail_all", "flush_for_commit"):
        assert hasattr(message_accumulator.MessageAccumulator, part)
    for part in ("fatal_error", "is_empty_transaction", "complete_transaction"):
        assert hasattr(transaction_manager.TransactionManager, part)
    not_sent = source(AIOKafkaClient.send)
    assert not_sent.index("raise NodeNotReadyError(") < not_sent.index("].send(")


def test_heartbeats_pass_the_one_place_where_their_answers_are_noted():
    """So a member knows whether the group's present generation holds it."""
    heartbeat = source(group_coordinator.GroupCoordinator._do_heartbeat)
    assert "HeartbeatRequest(self.group_id, self.generation, self.member_id)" in heartbeat
    assert "await self._send_req(request)" in heartbeat
    assert "await self._do_heartbeat()" in source(
        group_coordinator.GroupCoordinator._heartbeat_routine
    )
    assert HeartbeatRequest("group", 7, "member")._generation_id == 7
    assert "self._coordinator = GroupCoordinator(" in source(AIOKafkaConsumer.start)


def test_a_fetcher_asks_for_ends_with_its_own_isolation_level():
    """So a copy of it with another level can ask where everything that is written ends."""
    assert "OffsetRequest(-1, self._isolation_level" in source(fetcher.Fetcher._proc_offset_request)
    assert list(inspect.signature(fetcher.Fetcher.end_offsets).parameters) == [
        "self",
        "partitions",
        "timeout_ms",
    ]
    assert "self._request_timeout_ms = " in source(AIOKafkaConsumer.__init__)
    assert not hasattr(fetcher.Fetcher, "__del__")


async def test_builders_take_raw_records_and_refuse_the_one_that_is_too_much(broker_address):
    async with AIOKafkaProducer(bootstrap_servers=broker_address, max_batch_size=1_000) as producer:
        batch = producer.create_batch()
        assert isinstance(batch._builder, DefaultRecordBatchBuilder)
        count = 0
        while batch._builder.append(count, 5, b"k", bytes(100), []) is not None:
            count += 1
        assert 5 <= count <= 9
        batch._relative_offset = count
        assert batch.record_count() == count
        # The first record always fits, so that a large one can be sent at all.
        assert producer.create_batch()._builder.append(0, 5, b"k", bytes(5_000), []) is not None


async def test_fetched_records_wait_in_the_fetcher_as_compiled_batches(
    broker_address, prefix, tmp_path
):
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix)
    await create_topics(broker_address, conf, [agent])
    await produce(broker_address, prefix + "in", ids(range(3)))
    place = TopicPartition(prefix + "in", 0)
    async with AIOKafkaConsumer(
        bootstrap_servers=broker_address, isolation_level="read_committed", enable_auto_commit=False
    ) as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)
        fetching = consumer._fetcher
        async with asyncio.timeout(PATIENCE):
            while place not in fetching._records:
                await asyncio.wait([fetching._create_fetch_waiter()], timeout=0.1)
        result = fetching._records[place]
        assert type(result) is fetcher.FetchResult
        assert result.check_assignment(place)
        records = result._partition_records
        assert records.next_fetch_offset == 0
        assert records._isolation_level == fetcher.READ_COMMITTED
        batch = records._records.next_batch()
        assert (batch.base_offset, batch.next_offset, batch.is_control_batch) == (0, 3, False)
        assert batch.validate_crc()
        assert [record.value for record in batch] == ids(range(3))
        state = result._assignment.state_value(place)
        assert (state.lso, state.highwater) == (3, 3)


def test_compiled_reading_ends_at_a_header_key_that_is_not_utf8():
    """So `streams.kafka.client.record_batches` stands in for aiokafka's `MemoryRecords`."""
    assert fetcher.MemoryRecords is record_batches.ReadableRecords
    odd = wire.record_batch(wire.Raw(7, b"k", b"v", ((b"\xff", b"1"),)))
    with pytest.raises(UnicodeDecodeError):
        list(record_batches.CompiledRecords(odd).next_batch())
    (read,) = fetcher.MemoryRecords(odd).next_batch()
    assert (read.offset, read.timestamp, read.key, read.value) == (0, 7, b"k", b"v")
    assert read.headers == [("\\xff", b"1")]


async def test_a_commit_does_not_notice_a_failed_batch(broker_address, prefix, tmp_path):
    """So the engine waits for every batch before it commits."""
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix)
    await create_topics(broker_address, conf, [agent])
    producer = AIOKafkaProducer(
        bootstrap_servers=broker_address, transactional_id=prefix, max_batch_size=4 << 20
    )
    async with producer:
        await producer.begin_transaction()
        await (await _send(producer, prefix + "in", b"small"))
        too_large = await _send(producer, prefix + "in", bytes(2 << 20))
        await producer.commit_transaction()
        with pytest.raises(Exception, match="MessageSizeTooLarge"):
            await too_large


async def _send(producer, topic, value):
    batch = producer.create_batch()
    batch.append(timestamp=1, key=None, value=value)
    return await producer.send_batch(batch, topic, partition=0)


async def test_a_second_producer_of_a_name_fences_the_first(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix)
    await create_topics(broker_address, conf, [agent])
    first = AIOKafkaProducer(bootstrap_servers=broker_address, transactional_id=prefix)
    second = AIOKafkaProducer(bootstrap_servers=broker_address, transactional_id=prefix)
    async with first:
        await first.begin_transaction()
        await first.send_and_wait(prefix + "in", b"lost", partition=0)
        async with second:
            with pytest.raises(ProducerFenced):
                await first.commit_transaction()
