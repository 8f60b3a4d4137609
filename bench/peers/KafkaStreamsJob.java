import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.StreamWriteFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The pipeline's job in Kafka Streams, with River's logistic regression written in Java.
 *
 * <p>A task reads both inputs in the order of their timestamps. The features are those of `quix.py`. A
 * prediction waits in a state store until its label is there; then it becomes an outcome, and the model
 * learns. The sums of labels and the model are in a second store. Both stores have a cache and a changelog,
 * so outputs, state and offsets are committed in one transaction: after as many messages as the pipeline's,
 * or after 100 milliseconds, which is the default of Kafka Streams.
 *
 * <p>No prediction expires, and nothing is checked: a label without a prediction is ignored.
 */
public final class KafkaStreamsJob {
    private static final double WATCHED = 0.75; // a label above this watch ratio is positive
    private static final double PRIOR = 10.0; // weight of the mean that another one leans on
    private static final double RATIO_CAP = 2.0; // beyond, a watch ratio counts as this
    private static final double STEP = 0.01; // River's default

    private static final ObjectMapper JSON =
            JsonMapper.builder()
                    .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
                    .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
                    .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
                    .enable(StreamWriteFeature.USE_FAST_DOUBLE_WRITER)
                    .build();

    /** An interaction, or a label, which has a watch ratio. */
    record Input(String eventId, long userId, long videoId, long timestamp, Double watchRatio) {}

    /** The answer to an interaction. */
    record Prediction(
            String eventId,
            long userId,
            long videoId,
            long timestamp,
            double probability,
            boolean predicted,
            double[] features) {}

    /** A prediction with its label. */
    record Outcome(
            String eventId,
            long userId,
            long videoId,
            long timestamp,
            double probability,
            boolean predicted,
            double[] features,
            double watchRatio,
            boolean label,
            long labelTimestamp,
            boolean correct) {}

    /** Sums over labels: how many there were, how many said watched, and their watch ratios. */
    static final class Totals {
        private final KeyValueStore<String, double[]> sums;
        private final Map<Long, long[]> tagsOf;

        Totals(KeyValueStore<String, double[]> sums, Map<Long, long[]> tagsOf) {
            this.sums = sums;
            this.tagsOf = tagsOf;
        }

        /** Count a label. */
        void add(long user, long video, boolean watched, double ratio) {
            count("all", watched, ratio);
            count("user-" + user, watched, ratio);
            count("video-" + video, watched, ratio);
            for (long tag : tags(video)) {
                count("tag-" + tag, watched, ratio);
            }
        }

        /** Return means that lean on those of all events or of the tags, their logits, and log counts. */
        double[] features(long user, long video) {
            double[] all = get("all");
            double labelPrior = (all[1] + 0.5) / (all[0] + 1.0);
            double ratioPrior = (all[2] + 0.5) / (all[0] + 1.0);
            double[] ofTags = new double[3];
            for (long tag : tags(video)) {
                double[] ofTag = get("tag-" + tag);
                for (int i = 0; i < 3; i++) {
                    ofTags[i] += ofTag[i];
                }
            }
            double[] ofVideo = get("video-" + video);
            double[] features = new double[10];
            block(features, 0, get("user-" + user), labelPrior, ratioPrior);
            block(features, 4, ofVideo, labelPrior, ratioPrior);
            features[8] = smoothed(ofVideo[1], ofVideo[0], smoothed(ofTags[1], ofTags[0], labelPrior));
            features[9] = smoothed(ofVideo[2], ofVideo[0], smoothed(ofTags[2], ofTags[0], ratioPrior));
            return features;
        }

        private static void block(double[] to, int at, double[] of, double labelPrior, double ratioPrior) {
            double mean = smoothed(of[1], of[0], labelPrior);
            to[at] = mean;
            to[at + 1] = Math.log(mean / (1.0 - mean));
            to[at + 2] = smoothed(of[2], of[0], ratioPrior);
            to[at + 3] = Math.log1p(of[0]);
        }

        private static double smoothed(double total, double events, double prior) {
            return (total + PRIOR * prior) / (events + PRIOR);
        }

        private void count(String key, boolean watched, double ratio) {
            double[] of = get(key);
            of[0] += 1.0;
            of[1] += watched ? 1.0 : 0.0;
            of[2] += Math.min(ratio, RATIO_CAP);
            sums.put(key, of);
        }

        private double[] get(String key) {
            double[] found = sums.get(key);
            return found == null ? new double[3] : found;
        }

        private long[] tags(long video) {
            return tagsOf.getOrDefault(video, new long[0]);
        }
    }

    /** River's `StandardScaler() | LogisticRegression()`, as one array of the state store. */
    static final class Model {
        private static final String KEY = "model";
        private static final int SIZE = 10;
        private static final int VARIANCES = SIZE; // behind the means
        private static final int WEIGHTS = 2 * SIZE;
        private static final int INTERCEPT = 3 * SIZE;
        private static final int COUNT = 3 * SIZE + 1;

        private final KeyValueStore<String, double[]> store;

        Model(KeyValueStore<String, double[]> store) {
            this.store = store;
        }

        double predict(double[] features) {
            return probability(get(), features);
        }

        void learn(double[] features, boolean label) {
            double[] state = get();
            double count = state[COUNT] += 1.0;
            for (int i = 0; i < SIZE; i++) {
                double before = features[i] - state[i];
                state[i] += before / count;
                double change = before * (features[i] - state[i]) - state[VARIANCES + i];
                state[VARIANCES + i] += change / count;
            }
            double slope = probability(state, features) - (label ? 1.0 : 0.0);
            for (int i = 0; i < SIZE; i++) {
                state[WEIGHTS + i] -= STEP * slope * scaled(state, features, i);
            }
            state[INTERCEPT] -= STEP * slope;
            store.put(KEY, state);
        }

        private static double probability(double[] state, double[] features) {
            double score = state[INTERCEPT];
            for (int i = 0; i < SIZE; i++) {
                score += state[WEIGHTS + i] * scaled(state, features, i);
            }
            return 1.0 / (1.0 + Math.exp(-score));
        }

        private static double scaled(double[] state, double[] features, int i) {
            double variance = state[VARIANCES + i];
            return variance > 0.0 ? (features[i] - state[i]) / Math.sqrt(variance) : 0.0;
        }

        private double[] get() {
            double[] found = store.get(KEY);
            return found == null ? new double[COUNT + 1] : found;
        }
    }

    /** Answers an interaction with a prediction, a label with an outcome. */
    static final class Predictor implements Processor<byte[], byte[], byte[], byte[]> {
        private final Map<Long, long[]> tagsOf;
        private final int batch;
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<String, byte[]> pending;
        private Totals totals;
        private Model model;
        private int uncommitted;

        Predictor(Map<Long, long[]> tagsOf, int batch) {
            this.tagsOf = tagsOf;
            this.batch = batch;
        }

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            this.context = context;
            pending = context.getStateStore("pending");
            totals = new Totals(context.getStateStore("learned"), tagsOf);
            model = new Model(context.getStateStore("learned"));
        }

        @Override
        public void process(Record<byte[], byte[]> message) {
            try {
                Input input = JSON.readValue(message.value(), Input.class);
                if (input.watchRatio() == null) {
                    predict(message, input);
                } else {
                    learn(message, input);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            if (++uncommitted == batch) {
                context.commit();
                uncommitted = 0;
            }
        }

        private void predict(Record<byte[], byte[]> message, Input input) throws IOException {
            double[] features = totals.features(input.userId(), input.videoId());
            double probability = model.predict(features);
            Prediction prediction =
                    new Prediction(
                            input.eventId(),
                            input.userId(),
                            input.videoId(),
                            input.timestamp(),
                            probability,
                            probability > 0.5,
                            features);
            byte[] text = JSON.writeValueAsBytes(prediction);
            pending.put(input.eventId(), text);
            context.forward(message.withValue(text), "predictions");
        }

        private void learn(Record<byte[], byte[]> message, Input label) throws IOException {
            byte[] text = pending.delete(label.eventId());
            if (text == null) {
                return;
            }
            Prediction prediction = JSON.readValue(text, Prediction.class);
            boolean watched = label.watchRatio() > WATCHED;
            model.learn(prediction.features(), watched);
            totals.add(label.userId(), label.videoId(), watched, label.watchRatio());
            Outcome outcome =
                    new Outcome(
                            prediction.eventId(),
                            prediction.userId(),
                            prediction.videoId(),
                            prediction.timestamp(),
                            prediction.probability(),
                            prediction.predicted(),
                            prediction.features(),
                            label.watchRatio(),
                            watched,
                            label.timestamp(),
                            watched == prediction.predicted());
            context.forward(message.withValue(JSON.writeValueAsBytes(outcome)), "outcomes");
        }
    }

    private static Serde<double[]> doubles() {
        return Serdes.serdeFrom(
                (topic, numbers) -> {
                    if (numbers == null) {
                        return null;
                    }
                    ByteBuffer bytes = ByteBuffer.allocate(numbers.length * Double.BYTES);
                    bytes.asDoubleBuffer().put(numbers);
                    return bytes.array();
                },
                (topic, bytes) -> {
                    if (bytes == null) {
                        return null;
                    }
                    double[] numbers = new double[bytes.length / Double.BYTES];
                    ByteBuffer.wrap(bytes).asDoubleBuffer().get(numbers);
                    return numbers;
                });
    }

    /** Return a store with a cache and, by default, a changelog. */
    private static <V> StoreBuilder<KeyValueStore<String, V>> store(
            String name, String kind, Serde<V> values) {
        KeyValueBytesStoreSupplier supplier =
                switch (kind) {
                    case "memory" -> Stores.inMemoryKeyValueStore(name);
                    case "rocksdb" -> Stores.persistentKeyValueStore(name);
                    default -> throw new IllegalArgumentException("no such kind of store: " + kind);
                };
        return Stores.keyValueStoreBuilder(supplier, Serdes.String(), values).withCachingEnabled();
    }

    /** Return the tags of each video, from KuaiRec's item_categories.csv. */
    private static Map<Long, long[]> tagsOf(Path file) throws IOException {
        Pattern row = Pattern.compile("(\\d+),\"?\\[(.*)]\"?");
        Map<Long, long[]> found = new HashMap<>();
        for (String line : Files.readAllLines(file)) {
            Matcher parts = row.matcher(line);
            if (parts.matches()) {
                long[] tags = Arrays.stream(parts.group(2).split(", *")).mapToLong(Long::parseLong).toArray();
                found.put(Long.parseLong(parts.group(1)), tags);
            }
        }
        return Collections.unmodifiableMap(found);
    }

    /** Run until killed. */
    public static void main(String[] arguments) throws IOException {
        Map<String, String> given =
                Arrays.stream(arguments)
                        .map(each -> each.split("=", 2))
                        .collect(Collectors.toMap(each -> each[0], each -> each[1]));
        Map<Long, long[]> tagsOf = tagsOf(Path.of(given.get("tags")));
        int batch = Integer.parseInt(given.get("batch"));
        var topology = new Topology();
        var bytes = new ByteArrayDeserializer();
        var written = new ByteArraySerializer();
        topology.addSource("inputs", bytes, bytes, given.get("interactions"), given.get("labels"))
                .addProcessor("predictor", () -> new Predictor(tagsOf, batch), "inputs")
                .addStateStore(store("pending", given.get("store"), Serdes.ByteArray()), "predictor")
                .addStateStore(store("learned", given.get("store"), doubles()), "predictor")
                .addSink("predictions", given.get("predictions"), written, written, "predictor")
                .addSink("outcomes", given.get("outcomes"), written, written, "predictor");
        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given.get("group"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given.get("bootstrap"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, given.get("state"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        // What the pipeline's producer has as well; a batch is up to a megabyte, as it is by default in librdkafka.
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.COMPRESSION_TYPE_CONFIG), "lz4");
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), 5);
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 1_000_000);
        new KafkaStreams(topology, settings).start();
    }
}
