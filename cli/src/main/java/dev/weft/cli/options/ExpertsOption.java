package dev.weft.cli.options;

import static dev.weft.process.SafeText.excerpt;

import dev.weft.cli.console.UsageException;
import dev.weft.plan.Shards;
import dev.weft.search.Problem;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import picocli.CommandLine.Option;

/** Experts, of which each row is multiplied by a few; ranks have some of them each. */
public final class ExpertsOption {

    private static final String UNIFORM = "uniform";
    private static final String ZIPF = "zipf:";

    /** A rank whose experts get hardly any rows is not infinitely fast. */
    private static final double LEAST_LOAD = 1e-3;

    @Option(
            names = "--experts",
            paramLabel = "E",
            description =
                    "A layer of E experts, spread evenly over the ranks: each has a B of K x N, and a"
                            + " row is multiplied by --experts-per-row of them.")
    Integer experts;

    @Option(
            names = "--experts-per-row",
            paramLabel = "P",
            description = "Experts of a row (default: 2).")
    Integer givenPerRow;

    @Option(
            names = "--routing",
            converter = LowerCase.class,
            paramLabel = "HOW",
            description =
                    "How rows choose their experts: uniform, or zipf:S, where expert number i is"
                            + " 1/(i+1)^S times as popular as the first (default: uniform).")
    String givenRouting;

    private int perRow;
    private String routing;

    /** Refuses what goes with experts if there are none. */
    public boolean isGiven() {
        perRow = givenPerRow == null ? 2 : givenPerRow;
        routing = givenRouting == null ? UNIFORM : givenRouting;
        if (experts == null && (givenPerRow != null || givenRouting != null)) {
            throw new UsageException(
                    givenPerRow != null
                            ? "--experts-per-row " + givenPerRow + ": goes with --experts"
                            : "--routing '" + excerpt(givenRouting) + "': goes with --experts");
        }
        return experts != null;
    }

    /**
     * The problem that takes as long: the product of all rows by as many columns, or over as large
     * a K, as a rank's experts multiply on average. A rank whose experts get more rows is slower.
     */
    public Problem of(Problem one, boolean summed) {
        int ranks = one.shards().ranks();
        check(ranks);
        long factor = summed ? perRow : 1;
        long columns = Math.ceilDiv(one.allColumns() * perRow, ranks);
        Map<Integer, Double> slow = new HashMap<>(one.slowRanks());
        double[] loads = loads(ranks);
        for (int rank = 0; rank < ranks; rank++) {
            slow.merge(rank, loads[rank], (given, load) -> given * load);
        }
        Problem product =
                Problem.of(
                        one.shards(),
                        one.k() * factor,
                        summed ? one.allColumns() : columns,
                        one.aType(),
                        one.outType());
        return product.slowed(slow);
    }

    private void check(int ranks) {
        OptionValues.between("--experts", experts, 1, OptionValues.MOST_RANKS);
        OptionValues.between("--experts-per-row", perRow, 1, experts);
        if (experts < ranks) {
            throw new UsageException(
                    "--experts %s on %s ranks: expected one for each rank at least",
                    experts, ranks);
        }
    }

    /** By rank: the rows of its experts over the mean of all ranks. */
    double[] loads(int ranks) {
        double[] taken = taken();
        Shards ofRanks = Shards.even(experts, ranks);
        double[] loads = new double[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            int first = (int) ofRanks.firstRow(rank);
            double rows =
                    Arrays.stream(taken, first, first + (int) ofRanks.rows(rank)).sum() / perRow;
            loads[rank] = Math.max(LEAST_LOAD, rows * ranks);
        }
        return loads;
    }

    /** By expert: the part of the rows that it takes. No row takes an expert twice. */
    private double[] taken() {
        double[] popular = new double[experts];
        double exponent = exponent();
        Arrays.setAll(popular, e -> Math.pow(e + 1, -exponent));
        double low = 0;
        double high = perRow / popular[experts - 1];
        for (int step = 0; step < Double.SIZE; step++) {
            double scale = (low + high) / 2;
            double all = Arrays.stream(popular).map(p -> Math.min(1, scale * p)).sum();
            low = all < perRow ? scale : low;
            high = all < perRow ? high : scale;
        }
        double scale = high;
        return Arrays.stream(popular).map(p -> Math.min(1, scale * p)).toArray();
    }

    private double exponent() {
        if (routing.equals(UNIFORM)) {
            return 0;
        }
        if (routing.startsWith(ZIPF)) {
            try {
                double exponent = Double.parseDouble(routing.substring(ZIPF.length()));
                if (exponent >= 0 && exponent <= 10) {
                    return exponent;
                }
            } catch (NumberFormatException e) {
                // Refused below, with the other nonsense.
            }
        }
        throw new UsageException(
                "--routing '%s': expected uniform, or zipf:S with S from 0 to 10",
                excerpt(routing));
    }

    /** A line about the experts and the rank with the most rows. */
    public String describe(int ranks) {
        double[] loads = loads(ranks);
        int most = 0;
        for (int rank = 1; rank < ranks; rank++) {
            most = loads[rank] > loads[most] ? rank : most;
        }
        return "%d experts, %d for a row, routing %s: rank %d of %d gets the most rows, %.2f times the mean"
                .formatted(experts, perRow, routing, most, ranks, loads[most]);
    }
}
