package dev.weft.bench.cpu;

import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * A problem on which {@code auto} has to find the best algorithm: sizes, shards, types and what is
 * kept are drawn, all from one seed, so that every process has the same ones. Immutable; any thread
 * may call it.
 *
 * @param index its number among them, by which ranks in other processes find it
 * @param rate of the links between the hosts, as the lab takes it; empty outside the lab
 * @param shards of A, one per rank
 * @param split how even the shards are
 * @param inner K of the product
 * @param columns N of the product
 * @param dtype of A and B
 * @param keepGathered whether gathered A is kept
 */
record RandomProblem(
        int index,
        Launcher launcher,
        String rate,
        Shards shards,
        Split split,
        long inner,
        long columns,
        DType dtype,
        boolean keepGathered) {

    static final long SEED = 20_251;
    static final int LAB_HOSTS = 2;
    static final List<String> LAB_RATES = List.of("100mbit", "400mbit", "2gbit");

    static final int THREADS = 22;
    static final int PROCESSES = 14;
    static final int LAB = 24;

    /** Of the products of all ranks: 40 ms for one core that does 100 GFLOP/s. */
    static final double MOST_OPERATIONS = 4e9;

    /** Of gathered A on all ranks; every algorithm's operator has two of them. */
    static final long MOST_BYTES = 64L << 20;

    /** For what crosses a link of the lab in one call. */
    static final double MOST_LINK_SECONDS = 0.1;

    private static final int FEWEST_RANKS = 2;
    private static final int MOST_RANKS = 6;
    private static final int MOST_LAB_RANKS_PER_HOST = 2;

    /** What the ranks are. */
    public enum Launcher {
        THREADS,
        PROCESSES,
        LAB;

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** How A lies on the ranks. */
    enum Split {
        EVEN,
        UNEVEN,
        ONE_EMPTY;

        String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    int ranks() {
        return shards.ranks();
    }

    int ranksPerHost() {
        return launcher == Launcher.LAB ? ranks() / LAB_HOSTS : ranks();
    }

    String describe() {
        String ranks =
                launcher == Launcher.LAB
                        ? LAB_HOSTS + "x" + ranksPerHost() + " " + rate
                        : Integer.toString(ranks());
        return "#%d %s %s: %d x %d x %d %s %s%s"
                .formatted(
                        index,
                        launcher.label(),
                        ranks,
                        shards.totalRows(),
                        inner,
                        columns,
                        dtype.label(),
                        split.label(),
                        keepGathered ? " kept" : "");
    }

    /** All of them; each stands at its own index. */
    static List<RandomProblem> all() {
        Draw draw = new Draw(new Random(SEED));
        List<RandomProblem> problems = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            problems.add(draw.problem(problems.size(), Launcher.THREADS, draw.ranks(), ""));
        }
        for (int i = 0; i < PROCESSES; i++) {
            problems.add(draw.problem(problems.size(), Launcher.PROCESSES, draw.ranks(), ""));
        }
        for (int i = 0; i < LAB; i++) {
            String rate = LAB_RATES.get(i % LAB_RATES.size());
            int perHost = 1 + i / LAB_RATES.size() % MOST_LAB_RANKS_PER_HOST;
            int ranks = LAB_HOSTS * perHost;
            problems.add(draw.problem(problems.size(), Launcher.LAB, ranks, rate));
        }
        return List.copyOf(problems);
    }

    /** Those of one launcher, at most so many. */
    static List<RandomProblem> of(Launcher launcher, int most) {
        return all().stream().filter(p -> p.launcher() == launcher).limit(most).toList();
    }

    /** As if each host had the same part of A. */
    static double linkSeconds(long matrixBytes, String rate) {
        double bitsPerSecond =
                Double.parseDouble(rate.substring(0, rate.length() - "mbit".length()))
                        * (rate.endsWith("gbit") ? 1e9 : 1e6);
        return 8.0 * matrixBytes / LAB_HOSTS / bitsPerSecond;
    }

    /** Draws one after the other. */
    private record Draw(Random random) {

        int ranks() {
            return random.nextInt(FEWEST_RANKS, MOST_RANKS + 1);
        }

        RandomProblem problem(int index, Launcher launcher, int ranks, String rate) {
            Split split = Split.values()[random.nextInt(Split.values().length)];
            DType dtype = random.nextBoolean() ? DType.FP32 : DType.BF16;
            boolean keep = random.nextBoolean();
            while (true) {
                long rows = logUniform(64, 8192);
                long inner = logUniform(64, 4096);
                long columns = logUniform(16, 2048);
                double operations = 2.0 * ranks * rows * inner * columns;
                long bytes = rows * inner * dtype.bytes();
                boolean linkAllows =
                        launcher != Launcher.LAB || linkSeconds(bytes, rate) <= MOST_LINK_SECONDS;
                if (operations <= MOST_OPERATIONS && ranks * bytes <= MOST_BYTES && linkAllows) {
                    Shards shards = shards(rows, ranks, split);
                    return new RandomProblem(
                            index, launcher, rate, shards, split, inner, columns, dtype, keep);
                }
            }
        }

        private long logUniform(long least, long most) {
            return Math.round(least * Math.pow((double) most / least, random.nextDouble()));
        }

        private Shards shards(long rows, int ranks, Split split) {
            return switch (split) {
                case EVEN -> Shards.even(rows, ranks);
                case UNEVEN -> uneven(rows, ranks);
                case ONE_EMPTY -> {
                    int empty = random.nextInt(ranks);
                    Shards others = Shards.even(rows, ranks - 1);
                    long[] parts = new long[ranks];
                    for (int r = 0; r < ranks - 1; r++) {
                        parts[r < empty ? r : r + 1] = others.rows(r);
                    }
                    yield Shards.of(parts);
                }
            };
        }

        /** Each takes up to twice its even part of what is left; none is empty. */
        private Shards uneven(long rows, int ranks) {
            long[] parts = new long[ranks];
            long left = rows - ranks;
            for (int r = 0; r < ranks - 1; r++) {
                parts[r] = 1 + random.nextLong(2 * left / (ranks - r) + 1);
                left -= parts[r] - 1;
            }
            parts[ranks - 1] = 1 + left;
            return Shards.of(parts);
        }
    }
}
