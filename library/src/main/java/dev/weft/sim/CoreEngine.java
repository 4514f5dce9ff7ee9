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
 */
public record CoreEngine(
        int cores,
        double capacity,
        Map<DType, Costs> costs,
        double blockUs,
        long rowQuantum,
        long blockRows)
        implements Engine {

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
        return new CoreEngine(some, work, costs, blockUs, rowQuantum, blockRows);
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
        return new CoreEngine(cores, capacity, faster, blockUs, rowQuantum, blockRows);
    }

    /** The same cores with another capacity. */
    public CoreEngine withCapacity(double newCapacity) {
        return new CoreEngine(cores, newCapacity, costs, blockUs, rowQuantum, blockRows);
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
