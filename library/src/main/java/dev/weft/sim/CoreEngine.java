package dev.weft.sim;

import dev.weft.tensor.DType;
import java.util.EnumMap;
import java.util.Map;

/**
 * Cores of a host that all its ranks share, for products and for moving bytes. The time of a
 * product of some rows with a B of [K, N] on one core is the sum of times for every operation,
 * every element of the rows read, every element of B read, every element of C written, and for the
 * call.
 *
 * @param capacity how many cores' worth of work all of them do together; less than {@code cores} if
 *     they share execution units
 * @param costs by the type of A
 * @param blockUs the time of each product besides its elements
 * @param inCalls what copies and sums cost in a call
 */
public record CoreEngine(
        int cores,
        double capacity,
        Map<DType, Costs> costs,
        double blockUs,
        long rowQuantum,
        long blockRows,
        CallCosts inCalls)
        implements Engine {

    /** An engine of which only products have been measured. */
    public CoreEngine(
            int cores,
            double capacity,
            Map<DType, Costs> costs,
            double blockUs,
            long rowQuantum,
            long blockRows) {
        this(cores, capacity, costs, blockUs, rowQuantum, blockRows, CallCosts.DEFAULTS);
    }

    /**
     * What copies and sums cost in a call. Costs are in units of one core's time to copy an
     * element.
     *
     * @param copyRate the rate of copies in a call, as a part of that of bare copies: they
     *     overwrite rows that are still in the cache of a core that multiplied them
     * @param store to write a sum after a product: unlike a probe's, many columns do not stay in a
     *     near cache
     * @param resume to read a sum before a product, if another core has written it
     * @param addition to add two sums
     * @param finish to turn a sum into an element of C of the same type
     * @param rounding to turn it into one of 16 bits, or to round it
     */
    public record CallCosts(
            double copyRate,
            double store,
            double resume,
            double addition,
            double finish,
            double rounding) {

        /**
         * For files that have none. Costs were found on a two-core Neoverse N1, which copies an
         * element in 0.33 ns, from six of the calls of docs/results/prediction.md. Rates in files
         * are those of copies in calls.
         */
        public static final CallCosts DEFAULTS = new CallCosts(1, 0.7, 2, 3.3, 2.4, 8);

        /**
         * For machines whose bare copies have been measured: in 30 runs on two cores with AVX-512,
         * gathers took 1.2 to 1.45 times as long as bare copies, with a median of 1.35.
         */
        public static final CallCosts OF_BARE_COPIES =
                new CallCosts(
                        0.75,
                        DEFAULTS.store,
                        DEFAULTS.resume,
                        DEFAULTS.addition,
                        DEFAULTS.finish,
                        DEFAULTS.rounding);

        public CallCosts {
            if (!(copyRate > 0 && copyRate <= 1)
                    || !(store >= 0)
                    || !(resume >= 0)
                    || !(addition >= 0)
                    || !(finish >= 0)
                    || !(rounding >= 0)) {
                throw new IllegalArgumentException(
                        "copies at %s of their rate, sums at %s, %s, %s, %s, %s copies: expected a rate above 0 up to 1 and nothing negative"
                                .formatted(copyRate, store, resume, addition, finish, rounding));
            }
        }
    }

    /**
     * @param gflops the rate of one core, in 10^9 operations a second
     * @param rowNs for each element of A's rows
     * @param bNs for each element of a B that does not stay on the chip, once for each product
     * @param outNs for each element of C
     */
    public record Costs(double gflops, double rowNs, double bNs, double outNs) {

        public Costs {
            if (!(gflops > 0) || !(rowNs >= 0) || !(bNs >= 0) || !(outNs >= 0)) {
                throw new IllegalArgumentException(
                        "%s GFLOP/s and %s, %s, %s ns an element: expected a positive rate and nothing negative"
                                .formatted(gflops, rowNs, bNs, outNs));
            }
        }
    }

    public CoreEngine {
        costs = Map.copyOf(costs);
        if (cores < 1
                || !(capacity > 0 && capacity <= cores)
                || costs.isEmpty()
                || !(blockUs >= 0)
                || rowQuantum < 1
                || blockRows < rowQuantum) {
            throw new IllegalArgumentException(
                    "%s cores that do the work of %s, %s us a block, row quantum %s, blocks of %s rows: expected at least one core, no more work than cores, and blocks of a quantum or more"
                            .formatted(cores, capacity, blockUs, rowQuantum, blockRows));
        }
    }

    /** The engine with a part of the cores, at least one. */
    CoreEngine part(double part) {
        int some = Math.max(1, (int) (cores * part));
        double work = Math.min(some, capacity * part);
        return new CoreEngine(some, work, costs, blockUs, rowQuantum, blockRows, inCalls);
    }

    @Override
    public boolean knows(DType aType) {
        return costs.containsKey(multiplied(aType));
    }

    /** Rows with scales are widened to fp32 before they are multiplied. */
    private static DType multiplied(DType aType) {
        return aType.isScaled() ? DType.FP32 : aType;
    }

    @Override
    public CoreEngine faster(double factor) {
        Map<DType, Costs> faster = new EnumMap<>(DType.class);
        costs.forEach(
                (type, cost) ->
                        faster.put(
                                type,
                                new Costs(
                                        cost.gflops() * factor,
                                        cost.rowNs() / factor,
                                        cost.bNs() / factor,
                                        cost.outNs() / factor)));
        return new CoreEngine(cores, capacity, faster, blockUs, rowQuantum, blockRows, inCalls);
    }

    /** The same cores with another capacity. */
    public CoreEngine withCapacity(double newCapacity) {
        return new CoreEngine(cores, newCapacity, costs, blockUs, rowQuantum, blockRows, inCalls);
    }

    /** One core's time for rows x [k, n]; {@code far} if B comes from far memory each time. */
    double productNs(DType aType, long rows, long k, long n, boolean far) {
        Costs cost = costs.get(multiplied(aType));
        double padded = (double) Math.ceilDiv(rows, rowQuantum) * rowQuantum;
        return blockUs * 1e3
                + 2 * padded * k * n / cost.gflops()
                + rows * (double) k * cost.rowNs()
                + (far ? (double) k * n * cost.bNs() : 0)
                + rows * (double) n * cost.outNs();
    }
}
