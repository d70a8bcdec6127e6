import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

// Apache Kafka's own client against a broker: for every codec, a transaction with records dated 1970 and 2100, read back
// by a group. Prints "codec key timestamp" for each record. Arguments: bootstrap server, topic, codecs.
class JavaClient {
    static final long IN_2100 = 4102444800000L;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.describeTopics(List.of(topic)).allTopicNames().get();
        }
        int sent = 0;
        for (String codec : args[2].split(",")) {
            Map<String, Object> p = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "compression.type", codec,
                "transactional.id", "java-" + codec, "linger.ms", 200, "max.block.ms", 20000));
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
                producer.initTransactions();
                producer.beginTransaction();
                for (long at : new long[] {1000L, IN_2100, 1000L}) {
                    producer.send(new ProducerRecord<>(topic, 0, at, codec, "x".repeat(200)));
                    sent++;
                }
                producer.commitTransaction();
            }
        }
        Map<String, Object> c = Map.of("bootstrap.servers", bootstrap, "group.id", "java-" + topic, "auto.offset.reset", "earliest",
            "isolation.level", "read_committed");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(c, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            for (int read = 0; read < sent && System.nanoTime() < deadline;) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println(record.key() + " " + record.value().length() + " " + record.timestamp());
                    read++;
                }
            }
            consumer.commitSync();
        }
    }
}
