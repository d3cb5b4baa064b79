import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The benchmark's job in Kafka Streams: one thread, a RocksDB store with cache and changelog, Jackson.
 *
 * Arguments: ADDRESS PREFIX FOLDER at_least_once|exactly_once_v2
 */
public final class KafkaStreamsJob {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Counts the records of a cell, which is the key, and answers each. */
    private static final class Counting implements Processor<String, byte[], String, byte[]> {
        private ProcessorContext<String, byte[]> context;
        private KeyValueStore<String, Long> counts;

        @Override
        public void init(ProcessorContext<String, byte[]> given) {
            context = given;
            counts = given.getStateStore("counts");
        }

        @Override
        public void process(Record<String, byte[]> record) {
            try {
                JsonNode in = JSON.readTree(record.value());
                Long before = counts.get(record.key());
                long number = before == null ? 1 : before + 1;
                counts.put(record.key(), number);
                ObjectNode out = JSON.createObjectNode();
                out.put("id", in.get("id").asLong()).put("ll", "a").put("y", 1).put("n", number);
                String key = Long.toString(in.get("id").asLong());
                context.forward(record.withKey(key).withValue(JSON.writeValueAsBytes(out)));
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }
    }

    public static void main(String[] arguments) {
        String prefix = arguments[1];
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix + "streams");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[3]);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // As large as the others': the defaults suit many small partitions.
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 512 << 10);
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 10_000);
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 2 << 20);
        StreamsBuilder builder = new StreamsBuilder();
        builder.addStateStore(
                Stores.keyValueStoreBuilder(
                                Stores.persistentKeyValueStore("counts"), Serdes.String(), Serdes.Long())
                        .withCachingEnabled());
        builder.stream(prefix + "in", Consumed.with(Serdes.String(), Serdes.ByteArray()))
                .process(Counting::new, "counts")
                .to(prefix + "out", Produced.with(Serdes.String(), Serdes.ByteArray()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
