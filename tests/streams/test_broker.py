from aiokafka.admin import AIOKafkaAdminClient


async def test_answers(broker_address):
    admin = AIOKafkaAdminClient(bootstrap_servers=broker_address)
    await admin.start()
    found = await admin.describe_cluster()
    await admin.close()
    assert len(found["brokers"]) == 1
