import dev.weft.fabric.*;
import dev.weft.op.*;
import dev.weft.plan.Shards;
import dev.weft.plan.group.*;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.*;

/**
 * A layer of experts with random weights: a router gives each token to a few of them, each expert
 * is a gated MLP, and a token's results are added by the router's weights. Ranks have some of the
 * tokens and some of the experts. The output has the same bits on any number of ranks:
 *
 * <pre>
 * JAVA="./weft java"
 * $JAVA examples/experts/MixtureOfExperts.java small 1 2 3            ranks as threads
 * $JAVA examples/experts/MixtureOfExperts.java deepseek 2             64 experts, 6 for a token: 1.1 GB
 * $JAVA examples/experts/MixtureOfExperts.java mixtral 2              8 experts, 2 for a token: 5.6 GB
 * ./weft launch -n 3 -- $JAVA examples/experts/MixtureOfExperts.java small     processes
 * </pre>
 */
record Layer(String name, int tokens, int width, int hidden, int experts, int perToken) {

    static final List<Layer> KNOWN = List.of(
            new Layer("small", 300, 96, 64, 10, 3),
            new Layer("deepseek", 1024, 2048, 1408, 64, 6),
            new Layer("mixtral", 512, 4096, 14336, 8, 2));

    static Layer of(String name) {
        return KNOWN.stream().filter(layer -> layer.name.equals(name)).findFirst().orElseThrow(
                () -> new IllegalArgumentException("layer " + name + ": expected small, deepseek or mixtral"));
    }

    /** The same values on whichever rank asks for them. */
    Matrix random(Arena arena, long seed, int rows, int cols) {
        Matrix matrix = Matrix.allocate(arena, DType.BF16, rows, cols);
        SplittableRandom random = new SplittableRandom(seed);
        matrix.fill(() -> (random.nextDouble() - 0.5) * Math.sqrt(12.0 / width));
        return matrix;
    }

    /** A router: the experts with the largest scores, weighted by these. Low numbers are popular. */
    Routes routes(int firstToken, int count) {
        Routes routes = new Routes(count, perToken);
        for (int row = 0; row < count; row++) {
            SplittableRandom random = new SplittableRandom(1000L + firstToken + row);
            double[] scores = new double[experts];
            Arrays.setAll(scores, e -> random.nextDouble() / Math.sqrt(e + 4));
            Integer[] best = new Integer[experts];
            Arrays.setAll(best, e -> e);
            Arrays.sort(best, Comparator.comparingDouble(e -> -scores[e]));
            double all = 0;
            for (int i = 0; i < perToken; i++) {
                all += scores[best[i]];
            }
            for (int i = 0; i < perToken; i++) {
                routes.set(row, i, best[i], (float) (scores[best[i]] / all));
            }
        }
        return routes;
    }
}

static final int CALLS = 5;

/** Returns a digest of the whole output, which is the same on every rank. */
static long forward(Fabric fabric, Layer layer) {
    int rank = fabric.rank();
    Shards tokens = Shards.even(layer.tokens(), fabric.size());
    Experts experts = Experts.of(Shards.even(layer.experts(), fabric.size()), layer.perToken());
    AllGatherMatmulBuilder up = AllGatherMatmul.on(fabric).a(tokens, DType.BF16)
            .epilogue(Epilogue.none().swiglu()).output(DType.BF16).engine("portable");
    MatmulReduceBuilder<MatmulReduceScatter> down = MatmulReduceScatter.on(fabric)
            .a(tokens, experts.ofRanks(), DType.BF16).engine("portable");
    try (Arena weights = Arena.ofShared()) {
        for (int e = experts.first(rank); e < experts.first(rank) + experts.count(rank); e++) {
            up.b(layer.random(weights, 3L * e, layer.width(), layer.hidden()));
            up.b(layer.random(weights, 3L * e + 1, layer.width(), layer.hidden()));
            down.b(layer.random(weights, 3L * e + 2, layer.hidden(), layer.width()));
        }
        try (GroupedAllGatherMatmul first = GroupedAllGatherMatmul.prepare(up, experts);
                GroupedMatmulReduceScatter second = GroupedMatmulReduceScatter.prepare(down, experts);
                Arena arena = Arena.ofShared()) {
            int firstToken = (int) tokens.firstRow(rank);
            int count = (int) tokens.rows(rank);
            Matrix x = layer.random(arena, -1, layer.tokens(), layer.width()).rows(firstToken, count);
            Routes routes = layer.routes(firstToken, count);
            long least = Long.MAX_VALUE;
            Matrix y = null;
            for (int call = 0; call < CALLS; call++) {
                long start = System.nanoTime();
                Matrix hidden = first.call(x, routes).product();
                y = second.call(hidden, first.groups()).product();
                least = Math.min(least, System.nanoTime() - start);
            }
            long digest = digest(fabric, y);
            if (rank == 0) {
                show(layer, first, fabric, least, digest);
            }
            return digest;
        }
    }
}

/** How many rows each expert got, and how long the layer took. */
static void show(Layer layer, GroupedAllGatherMatmul first, Fabric fabric, long ns, long digest) {
    int most = 0;
    for (int e = 0; e < layer.experts(); e++) {
        most = Math.max(most, first.rowsOf(e));
    }
    for (int e = 0; e < layer.experts(); e++) {
        int rows = first.rowsOf(e);
        IO.println("expert %2d %5d rows %s".formatted(e, rows, "#".repeat(40 * rows / most)));
    }
    double flops = 6.0 * layer.tokens() * layer.perToken() * layer.width() * layer.hidden();
    IO.println("%d ranks, %s: %d tokens of %d in %.1f ms (%.0f GFLOPS), digest %016x".formatted(
            fabric.size(), fabric.kind(), layer.tokens(), layer.width(), ns / 1e6, flops / ns, digest));
}

/** Of the rows of all ranks. */
static long digest(Fabric fabric, Matrix y) {
    long sum = 0;
    for (int row = 0; row < y.rows(); row++) {
        for (float value : y.rows(row, 1).toArray()) {
            // Not symmetric: values that change places change the digest.
            sum = sum * 31 + Float.floatToRawIntBits(value);
        }
    }
    // Rows are summed with powers of 31, so shards must be put together in order.
    long all = 0;
    long[] sums = fabric.exchange(sum);
    long[] counts = fabric.exchange(y.rows() * y.cols());
    for (int r = 0; r < fabric.size(); r++) {
        long shift = 1;
        for (long i = 0; i < counts[r]; i++) {
            shift *= 31;
        }
        all = all * shift + sums[r];
    }
    return all;
}

/** The name of a layer; then the numbers of threads, if no launcher says it. */
void main(String... args) {
    Layer layer = Layer.of(args.length == 0 ? "small" : args[0]);
    Map<String, String> environment = System.getenv();
    if (environment.containsKey("OMPI_COMM_WORLD_RANK") || environment.containsKey("PMI_RANK")) {
        try (World world = World.mpi(Duration.ofSeconds(60))) {
            world.run(fabric -> forward(fabric, layer));
        }
    } else if (environment.containsKey("RANK")) {
        try (World world = World.joined()) {
            world.run(fabric -> forward(fabric, layer));
        }
    } else {
        Set<Long> digests = new HashSet<>();
        List<String> counts = Arrays.stream(args).filter(word -> word.matches("[0-9]+")).toList();
        for (String ranks : counts.isEmpty() ? List.of("1", "2", "3") : counts) {
            try (World world = World.threads(Integer.parseInt(ranks))) {
                digests.addAll(world.call(fabric -> forward(fabric, layer)));
            }
        }
        if (digests.size() > 1) {
            throw new IllegalStateException("other bits on another number of ranks");
        }
    }
}
