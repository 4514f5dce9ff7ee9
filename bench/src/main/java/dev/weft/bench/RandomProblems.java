package dev.weft.bench;

import dev.weft.bench.RandomProblem.Launcher;
import dev.weft.bench.RandomProblem.Split;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Problems on which {@code auto} has to find the best algorithm: sizes, shards, types and what is
 * kept are drawn, all from one seed, so that every process has the same ones. Any thread may call
 * it.
 */
final class RandomProblems {

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

    private final Random random = new Random(SEED);

    private RandomProblems() {}

    /** All of them; each stands at its own index. */
    static List<RandomProblem> all() {
        RandomProblems draw = new RandomProblems();
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

    private int ranks() {
        return random.nextInt(FEWEST_RANKS, MOST_RANKS + 1);
    }

    private RandomProblem problem(int index, Launcher launcher, int ranks, String rate) {
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

    /** As if each host had the same part of A. */
    static double linkSeconds(long matrixBytes, String rate) {
        double bitsPerSecond =
                Double.parseDouble(rate.substring(0, rate.length() - "mbit".length()))
                        * (rate.endsWith("gbit") ? 1e9 : 1e6);
        return 8.0 * matrixBytes / LAB_HOSTS / bitsPerSecond;
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
