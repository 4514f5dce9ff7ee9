import dev.weft.fabric.*;
import dev.weft.op.*;
import dev.weft.plan.Shards;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.*;

/**
 * A transformer's blocks, tensor- and sequence-parallel: tokens, heads and hidden columns are cut
 * unevenly over the ranks, and all products are Weft's. The output has the same bits for any number
 * of ranks, whatever they are:
 *
 * <pre>
 * JAVA="java --enable-native-access=ALL-UNNAMED -cp cli/target/lib/*"
 * $JAVA examples/mlp/Mlp.java bf16 1 2 3 5 7 8                  ranks as threads
 * ./weft launch -n 3 -- $JAVA examples/mlp/Mlp.java bf16        processes
 * mpirun -n 3 $JAVA examples/mlp/Mlp.java bf16                  MPI, on one host or many
 * </pre>
 */
static final int TOKENS = 50;
static final int WIDTH = 128;
static final int HEADS = 16;
static final int HEAD_WIDTH = WIDTH / HEADS;
static final int HIDDEN = 344;
static final int LAYERS = 2;

/** Which ranks have what; rank 1 has about twice as much as rank 0, rank 2 three times. */
static Shards cut(int whole, int ranks, int unit) {
    int[] starts = new int[ranks + 1];
    for (int r = 0; r < ranks; r++) {
        starts[r + 1] = starts[r] + 1 + r % 3;
    }
    long[] parts = new long[ranks];
    Arrays.setAll(parts, r -> (long) unit * (whole * starts[r + 1] / starts[ranks] - whole * starts[r] / starts[ranks]));
    return Shards.of(parts);
}

/** All of a matrix of weights, the same on every rank. */
static Matrix weights(Arena arena, DType type, int layer, int number, int rows, int cols) {
    Matrix matrix = Matrix.allocate(arena, type, rows, cols);
    Random random = new Random(100L * layer + number);
    matrix.fill(() -> random.nextGaussian() / Math.sqrt(rows));
    return matrix;
}

/** One block on one rank. Its operators are prepared once, for any number of calls. */
static final class Block implements AutoCloseable {
    private final Matrix normed;
    private final Matrix attended;
    private final AllGatherMatmul queryKeyValue;
    private final MatmulReduceScatter attentionOut;
    private final AllGatherMatmul gateUp;
    private final MatmulReduceScatter down;
    private Matrix x;
    private Matrix y;

    Block(Fabric fabric, Arena arena, DType type, int layer) {
        int rank = fabric.rank();
        Shards tokens = cut(TOKENS, fabric.size(), 1);
        Shards heads = cut(HEADS, fabric.size(), HEAD_WIDTH);
        Shards hidden = cut(HIDDEN, fabric.size(), 1);
        normed = Matrix.allocate(arena, type, tokens.rows(rank), WIDTH);
        attended = Matrix.allocate(arena, type, TOKENS, heads.rows(rank));
        x = normed;
        y = normed;
        Matrix[] bias = new Matrix[3];
        AllGatherMatmulBuilder gather = AllGatherMatmul.on(fabric).a(tokens, type);
        for (int i = 0; i < 3; i++) {
            gather.b(columns(weights(arena, type, layer, i, WIDTH, WIDTH), heads, rank));
            bias[i] = columns(weights(arena, type, layer, 10 + i, 1, WIDTH), heads, rank);
        }
        queryKeyValue = gather.epilogue(Epilogue.none().bias(bias)).engine("portable").prepare();
        attentionOut = MatmulReduceScatter.on(fabric).a(tokens, heads, type)
                .b(rows(weights(arena, type, layer, 3, WIDTH, WIDTH), heads, rank))
                .epilogue(Epilogue.none().residual(() -> x)).engine("portable").prepare();
        gateUp = AllGatherMatmul.on(fabric).a(tokens, type)
                .b(columns(weights(arena, type, layer, 4, WIDTH, HIDDEN), hidden, rank))
                .b(columns(weights(arena, type, layer, 5, WIDTH, HIDDEN), hidden, rank))
                .epilogue(Epilogue.none().swiglu()).engine("portable").prepare();
        down = MatmulReduceScatter.on(fabric).a(tokens, hidden, type)
                .b(rows(weights(arena, type, layer, 6, HIDDEN, WIDTH), hidden, rank))
                .epilogue(Epilogue.none().residual(() -> y)).engine("portable").prepare();
    }

    private static Matrix columns(Matrix whole, Shards cut, int rank) {
        return whole.block(0, whole.rows(), cut.firstRow(rank), cut.rows(rank));
    }

    private static Matrix rows(Matrix whole, Shards cut, int rank) {
        return whole.rows(cut.firstRow(rank), cut.rows(rank));
    }

    /** This rank's tokens in, this rank's tokens out; valid until the next call. */
    Matrix call(Matrix tokens) {
        x = tokens;
        Result<Matrix> qkv = queryKeyValue.call(norm(x));
        attend(qkv.product(0), qkv.product(1), qkv.product(2));
        y = attentionOut.call(attended).product();
        return down.call(gateUp.call(norm(y)).product()).product();
    }

    /** Every token divided by its root mean square. */
    private Matrix norm(Matrix tokens) {
        for (long row = 0; row < tokens.rows(); row++) {
            double squares = 0;
            for (int col = 0; col < WIDTH; col++) {
                squares += (double) tokens.get(row, col) * tokens.get(row, col);
            }
            double scale = 1 / Math.sqrt(squares / WIDTH + 1e-6);
            for (int col = 0; col < WIDTH; col++) {
                normed.set(row, col, (float) (tokens.get(row, col) * scale));
            }
        }
        return normed;
    }

    /** Causal attention, in plain Java: a head is on one rank, and Weft has no part in it. */
    private void attend(Matrix query, Matrix key, Matrix value) {
        double[] weight = new double[TOKENS];
        for (int head = 0; head < attended.cols(); head += HEAD_WIDTH) {
            for (int row = 0; row < TOKENS; row++) {
                double sum = 0;
                for (int other = 0; other <= row; other++) {
                    double score = 0;
                    for (int col = head; col < head + HEAD_WIDTH; col++) {
                        score += (double) query.get(row, col) * key.get(other, col);
                    }
                    weight[other] = StrictMath.exp(score / Math.sqrt(HEAD_WIDTH));
                    sum += weight[other];
                }
                for (int col = head; col < head + HEAD_WIDTH; col++) {
                    double mixed = 0;
                    for (int other = 0; other <= row; other++) {
                        mixed += weight[other] * value.get(other, col);
                    }
                    attended.set(row, col, (float) (mixed / sum));
                }
            }
        }
    }

    @Override
    public void close() {
        queryKeyValue.close();
        attentionOut.close();
        gateUp.close();
        down.close();
    }
}

/** All ranks' output as one number, which depends on every bit and not on who has which tokens. */
static long digest(Fabric fabric, Matrix own) {
    long first = cut(TOKENS, fabric.size(), 1).firstRow(fabric.rank());
    long sum = 0;
    for (long row = 0; row < own.rows(); row++) {
        for (int col = 0; col < WIDTH; col++) {
            long bits = Float.floatToRawIntBits(own.get(row, col));
            sum += new SplittableRandom(bits << 32 | (first + row) * WIDTH + col).nextLong();
        }
    }
    return Arrays.stream(fabric.exchange(sum)).sum();
}

static long forward(Fabric fabric, DType type) {
    List<Block> blocks = new ArrayList<>();
    try (Arena arena = Arena.ofShared()) {
        Shards tokens = cut(TOKENS, fabric.size(), 1);
        Matrix all = Matrix.allocate(arena, type, TOKENS, WIDTH);
        all.fill(new Random(1)::nextGaussian);
        for (int layer = 0; layer < LAYERS; layer++) {
            blocks.add(new Block(fabric, arena, type, layer));
        }
        Matrix x = Block.rows(all, tokens, fabric.rank());
        for (Block block : blocks) {
            x = block.call(x);
        }
        long digest = digest(fabric, x);
        if (fabric.rank() == 0) {
            IO.println("%s ranks, %s: output [%s, %s] %s, digest %016x"
                    .formatted(fabric.size(), fabric.kind(), TOKENS, WIDTH, type.label(), digest));
        }
        return digest;
    } finally {
        blocks.forEach(Block::close);
    }
}

/** A type, fp32 or bf16 or fp16; then the numbers of threads, where no launcher says it. */
void main(String... args) {
    DType type = args.length == 0 ? DType.BF16 : DType.of(args[0]);
    Map<String, String> environment = System.getenv();
    if (environment.containsKey("OMPI_COMM_WORLD_RANK") || environment.containsKey("PMI_RANK")) {
        try (World world = World.mpi(Duration.ofSeconds(60))) {
            world.run(fabric -> forward(fabric, type));
        }
    } else if (environment.containsKey("RANK")) {
        try (World world = World.joined()) {
            world.run(fabric -> forward(fabric, type));
        }
    } else {
        Set<Long> digests = new HashSet<>();
        List<String> counts = args.length < 2 ? List.of("1", "2", "3") : List.of(args).subList(1, args.length);
        for (String ranks : counts) {
            try (World world = World.threads(Integer.parseInt(ranks))) {
                digests.addAll(world.call(fabric -> forward(fabric, type)));
            }
        }
        if (digests.size() > 1) {
            throw new IllegalStateException("other bits on another number of ranks");
        }
    }
}
