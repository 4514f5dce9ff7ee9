import dev.weft.cuda.*;
import dev.weft.cuda.op.*;
import dev.weft.fabric.*;
import dev.weft.op.*;
import dev.weft.plan.Shards;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.*;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * A transformer's blocks, tensor- and sequence-parallel: tokens, heads and hidden columns are cut
 * unevenly over the ranks, and all products are Weft's. The output has the same bits for any number
 * of ranks, whatever they are:
 *
 * <pre>
 * JAVA="java --enable-native-access=ALL-UNNAMED -cp cli/target/lib/*"
 * $JAVA examples/mlp/Mlp.java bf16 1 2 3 5 7 8                  ranks as threads
 * ./weft launch -n 3 -- $JAVA examples/mlp/Mlp.java bf16        processes
 * ./weft launch --mpi -n 3 -- $JAVA examples/mlp/Mlp.java bf16  MPI, on one host or many
 * $JAVA examples/mlp/Mlp.java bf16 gpu 1 2 3 5 7 8              the products on a GPU that all ranks share
 * </pre>
 *
 * The bits of a GPU are not those of a CPU, but they are the same for any number of ranks too.
 */
static final int TOKENS = 50;
static final int WIDTH = 256;
static final int HEADS = 16;

/** A GPU sums 16 k at a time, so K is cut at multiples of that. */
static final int HEAD_WIDTH = WIDTH / HEADS;
static final int HIDDEN_UNIT = 16;
static final int HIDDEN = 22 * HIDDEN_UNIT;
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

/** One of Weft's operators: this rank's matrix in, its results out, in memory of the host. */
interface Layer extends AutoCloseable {
    List<Matrix> call(Matrix a);

    @Override
    void close();
}

/** Where a rank multiplies: on the CPU, or on a GPU if there is one. */
record Site(Fabric fabric, Gpu gpu, Arena arena, DType type) {

    Layer gather(Shards tokens, int results, Epilogue epilogue, Matrix... bs) {
        if (gpu == null) {
            AllGatherMatmulBuilder layer = AllGatherMatmul.on(fabric).a(tokens, type).output(type);
            List.of(bs).forEach(layer::b);
            return onHost(layer.epilogue(epilogue).engine("portable").prepare(), results);
        }
        CudaAllGatherMatmulBuilder layer = CudaAllGatherMatmul.on(fabric, gpu).a(tokens, type).output(type);
        List.of(bs).forEach(b -> layer.b(b, false));
        return onGpu(layer.epilogue(epilogue).prepare(), results, GpuStream.create(), null);
    }

    Layer scatter(Shards tokens, Shards kParts, Supplier<Matrix> residual, Matrix b) {
        if (gpu == null) {
            return onHost(MatmulReduceScatter.on(fabric).a(tokens, kParts, type).b(b).output(type)
                    .epilogue(Epilogue.none().residual(residual)).engine("portable").prepare(), 1);
        }
        long rows = tokens.rows(fabric.rank());
        DeviceBuffer buffer = DeviceBuffer.allocate(DeviceMatrix.alignedBytes(type, rows, WIDTH));
        DeviceMatrix there = DeviceMatrix.in(buffer, type, rows, WIDTH);
        GpuStream stream = GpuStream.create();
        Epilogue added = Epilogue.none().residual(() -> {
            there.upload(residual.get(), stream);
            return there;
        });
        return onGpu(CudaMatmulReduce.on(fabric, gpu, false).a(tokens, kParts, type).b(b, false).output(type)
                .epilogue(added).prepare(), 1, stream, buffer);
    }

    private static Layer onHost(Operator<Matrix> operator, int results) {
        return new Layer() {
            @Override
            public List<Matrix> call(Matrix a) {
                Result<Matrix> result = operator.call(a);
                return IntStream.range(0, results).mapToObj(result::product).toList();
            }

            @Override
            public void close() {
                operator.close();
            }
        };
    }

    /** Owns all that it is given; the buffer may be null. */
    private Layer onGpu(Operator<DeviceMatrix> operator, int results, GpuStream stream, DeviceBuffer buffer) {
        return new Layer() {
            @Override
            public List<Matrix> call(Matrix a) {
                DeviceMatrix place = operator.nextShard();
                place.upload(a, stream);
                Result<DeviceMatrix> result = operator.call(place);
                return IntStream.range(0, results).mapToObj(i -> downloaded(result.product(i))).toList();
            }

            private Matrix downloaded(DeviceMatrix product) {
                Matrix here = Matrix.allocate(arena, type, product.rows(), product.cols());
                product.download(here, stream);
                return here;
            }

            @Override
            public void close() {
                operator.close();
                stream.close();
                if (buffer != null) {
                    buffer.close();
                }
            }
        };
    }
}

/** One block on one rank. Its operators are prepared once, for any number of calls. */
static final class Block implements AutoCloseable {
    private final Matrix normed;
    private final Matrix attended;
    private final Layer queryKeyValue;
    private final Layer attentionOut;
    private final Layer gateUp;
    private final Layer down;
    private Matrix x;
    private Matrix y;

    Block(Site site, int layer) {
        int rank = site.fabric().rank();
        int ranks = site.fabric().size();
        Arena arena = site.arena();
        DType type = site.type();
        Shards tokens = cut(TOKENS, ranks, 1);
        Shards heads = cut(HEADS, ranks, HEAD_WIDTH);
        Shards hidden = cut(HIDDEN / HIDDEN_UNIT, ranks, HIDDEN_UNIT);
        normed = Matrix.allocate(arena, type, tokens.rows(rank), WIDTH);
        attended = Matrix.allocate(arena, type, TOKENS, heads.rows(rank));
        x = normed;
        y = normed;
        Matrix[] bias = new Matrix[3];
        Matrix[] weights = new Matrix[3];
        for (int i = 0; i < 3; i++) {
            weights[i] = columns(weights(arena, type, layer, i, WIDTH, WIDTH), heads, rank);
            bias[i] = columns(weights(arena, type, layer, 10 + i, 1, WIDTH), heads, rank);
        }
        queryKeyValue = site.gather(tokens, 3, Epilogue.none().bias(bias), weights);
        attentionOut = site.scatter(tokens, heads, () -> x,
                rows(weights(arena, type, layer, 3, WIDTH, WIDTH), heads, rank));
        gateUp = site.gather(tokens, 1, Epilogue.none().swiglu(),
                columns(weights(arena, type, layer, 4, WIDTH, HIDDEN), hidden, rank),
                columns(weights(arena, type, layer, 5, WIDTH, HIDDEN), hidden, rank));
        down = site.scatter(tokens, hidden, () -> y,
                rows(weights(arena, type, layer, 6, HIDDEN, WIDTH), hidden, rank));
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
        List<Matrix> qkv = queryKeyValue.call(norm(x));
        attend(qkv.get(0), qkv.get(1), qkv.get(2));
        y = attentionOut.call(attended).getFirst();
        return down.call(gateUp.call(norm(y)).getFirst()).getFirst();
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

static long forward(Fabric fabric, DType type, boolean onGpu) {
    List<Block> blocks = new ArrayList<>();
    Gpu gpu = onGpu ? Gpu.open(0) : null;
    try (Arena arena = Arena.ofShared()) {
        if (onGpu) {
            gpu.bind();
        }
        Site site = new Site(fabric, gpu, arena, type);
        Shards tokens = cut(TOKENS, fabric.size(), 1);
        Matrix all = Matrix.allocate(arena, type, TOKENS, WIDTH);
        all.fill(new Random(1)::nextGaussian);
        for (int layer = 0; layer < LAYERS; layer++) {
            blocks.add(new Block(site, layer));
        }
        Matrix x = Block.rows(all, tokens, fabric.rank());
        for (Block block : blocks) {
            x = block.call(x);
        }
        long digest = digest(fabric, x);
        if (fabric.rank() == 0) {
            IO.println("%s ranks, %s%s: output [%s, %s] %s, digest %016x"
                    .formatted(fabric.size(), fabric.kind(), onGpu ? " on " + gpu.name() : "", TOKENS,
                            WIDTH, type.label(), digest));
        }
        return digest;
    } finally {
        blocks.forEach(Block::close);
    }
}

/** A type, fp32 or bf16 or fp16; gpu for one; then the numbers of threads, if no launcher says it. */
void main(String... args) {
    DType type = args.length == 0 ? DType.BF16 : DType.of(args[0]);
    boolean gpu = List.of(args).contains("gpu");
    Map<String, String> environment = System.getenv();
    if (environment.containsKey("OMPI_COMM_WORLD_RANK") || environment.containsKey("PMI_RANK")) {
        try (World world = World.mpi(Duration.ofSeconds(60))) {
            world.run(fabric -> forward(fabric, type, gpu));
        }
    } else if (environment.containsKey("RANK")) {
        try (World world = World.joined()) {
            world.run(fabric -> forward(fabric, type, gpu));
        }
    } else {
        Set<Long> digests = new HashSet<>();
        List<String> counts = Arrays.stream(args).filter(word -> word.matches("[0-9]+")).toList();
        for (String ranks : counts.isEmpty() ? List.of("1", "2", "3") : counts) {
            try (World world = World.threads(Integer.parseInt(ranks))) {
                digests.addAll(world.call(fabric -> forward(fabric, type, gpu)));
            }
        }
        if (digests.size() > 1) {
            throw new IllegalStateException("other bits on another number of ranks");
        }
    }
}
