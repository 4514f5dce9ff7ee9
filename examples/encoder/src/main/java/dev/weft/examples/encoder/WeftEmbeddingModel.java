package dev.weft.examples.encoder;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.model.embedding.DimensionAwareEmbeddingModel;
import dev.langchain4j.model.embedding.request.EmbeddingRequest;
import dev.langchain4j.model.embedding.response.EmbeddingResponse;
import dev.langchain4j.model.embedding.response.EmbeddingResponseMetadata;
import dev.langchain4j.model.output.TokenUsage;
import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * all-MiniLM-L6-v2 on Weft, as an embedding model of LangChain4j: {@code
 * WeftEmbeddingModel.threads(2)} in place of {@code new AllMiniLmL6V2EmbeddingModel()}.
 *
 * <p>A text's embedding has the same bits for any number of ranks, whatever they are, and in any
 * batch; on a GPU it has others than on CPUs. Any thread may call it; calls are made one after the
 * other. If ranks are processes, all make the same calls in the same order, and all get the
 * results.
 */
public final class WeftEmbeddingModel extends DimensionAwareEmbeddingModel
        implements AutoCloseable {

    private static final Executor THREADS = task -> Thread.ofPlatform().start(task);

    private World world;

    /** Null on CPUs. */
    private final Gpu gpu;

    private final Arena arena = Arena.ofShared();
    private final Model model = Model.load(arena);

    /** The ranks of this process. */
    private final Map<Integer, RankEncoder> encoders = new ConcurrentHashMap<>();

    private WeftEmbeddingModel(Supplier<World> world, Gpu gpu) throws IOException {
        this.world = world.get();
        this.gpu = gpu;
    }

    /** On so many threads of this process. */
    public static WeftEmbeddingModel threads(int ranks) throws IOException {
        return new WeftEmbeddingModel(() -> World.threads(ranks), null);
    }

    /** On the ranks that {@code mpirun} or {@code weft launch} has started, or else on threads. */
    public static WeftEmbeddingModel auto(int ranks) throws IOException {
        return new WeftEmbeddingModel(() -> World.auto(ranks), null);
    }

    /**
     * On the first GPU, which the ranks share; they are those of {@link #auto}. One rank is the
     * fastest.
     *
     * @throws IllegalStateException with a one-line message, if there is no GPU
     */
    public static WeftEmbeddingModel gpu(int ranks) throws IOException {
        Gpu gpu = Gpu.open(0);
        return new WeftEmbeddingModel(() -> World.auto(ranks), gpu);
    }

    /** Whether this process has rank 0, which speaks for all. */
    public boolean isFirstRank() {
        return encoders.containsKey(0);
    }

    @Override
    public String modelName() {
        return "all-minilm-l6-v2";
    }

    @Override
    protected Integer knownDimension() {
        return Weights.WIDTH;
    }

    @Override
    public EmbeddingResponse doEmbed(EmbeddingRequest request) {
        List<int[]> sentences =
                model.tokenizer()
                        .sentences(request.inputs().stream().map(input -> input.text()).toList());
        List<Embedding> embeddings = new ArrayList<>();
        for (float[] mean : encode(sentences)) {
            Embedding embedding = Embedding.from(mean);
            embedding.normalize();
            embeddings.add(embedding);
        }
        int tokens =
                sentences.stream().mapToInt(sentence -> sentence.length - WordPiece.MARKS).sum();
        return EmbeddingResponse.builder()
                .embeddings(embeddings)
                .metadata(
                        EmbeddingResponseMetadata.builder()
                                .modelName(modelName())
                                .tokenUsage(new TokenUsage(tokens))
                                .build())
                .build();
    }

    /** The mean of the last layer over each sentence's tokens. */
    synchronized float[][] encode(List<int[]> sentences) {
        return world.call(
                        fabric ->
                                encoders.computeIfAbsent(fabric.rank(), rank -> encoder(fabric))
                                        .encode(sentences))
                .getFirst();
    }

    private RankEncoder encoder(Fabric fabric) {
        return gpu == null
                ? new RankEncoder(fabric, model.weights())
                : RankEncoder.onGpu(fabric, model.weights(), gpu);
    }

    /** After a failure: has the ranks meet again; the weights stay in memory. */
    public synchronized void renew() {
        // At the same time: ranks that share a GPU wait for each other.
        CompletableFuture.allOf(
                        encoders.values().stream()
                                .map(encoder -> CompletableFuture.runAsync(encoder::close, THREADS))
                                .toArray(CompletableFuture<?>[]::new))
                .join();
        encoders.clear();
        world = world.renew();
    }

    /** Collective, if ranks are processes. */
    @Override
    public synchronized void close() {
        if (!encoders.isEmpty()) {
            world.run(fabric -> encoders.get(fabric.rank()).close());
        }
        world.close();
        arena.close();
    }
}
