package dev.weft.bench.peers;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * What a user has today: a C program that gathers or reduces by MPI and multiplies by OpenBLAS,
 * with one pinned rank and one thread per core. Used by one thread.
 */
public final class MpiProduct implements AutoCloseable {

    private final SteppedProcess process;
    private final boolean pinned;
    private final List<Step> steps = new ArrayList<>();

    /** What MPI does before or after the product. */
    public enum Work {
        GATHER,
        REDUCE_SCATTER,
        ALL_REDUCE,
        /** And a residual and a norm by the program itself. */
        ALL_REDUCE_NORM,
        /** A layer of experts. */
        EXPERTS;

        public String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    /** One call; each time is that of the slowest rank. */
    public record Step(long mpiNs, long productNs, long totalNs) {

        /**
         * What MPI adds to the product. The slowest rank in MPI is another one than the slowest in
         * the product: the sum of both would be more than a call ever takes.
         */
        public long addedNs() {
            return totalNs - productNs;
        }

        public static Step parse(String line) throws SteppedProcess.PeerException {
            String[] words = line.split(" ");
            if (words.length != 3) {
                throw new SteppedProcess.PeerException(
                        "the MPI program answered '" + line + "': expected three numbers");
            }
            return new Step(
                    Long.parseLong(words[0]), Long.parseLong(words[1]), Long.parseLong(words[2]));
        }
    }

    /**
     * @param pinned whether every rank has a core, or a hardware thread, of its own
     */
    MpiProduct(SteppedProcess process, boolean pinned) {
        this.process = process;
        this.pinned = pinned;
    }

    /** Whether every rank has a core, or a hardware thread, of its own. */
    public boolean pinned() {
        return pinned;
    }

    /** One call. */
    public long takeNs() throws IOException, InterruptedException {
        return takeNs(1);
    }

    /** So many calls in a row; the time of one of them. */
    public long takeNs(int calls) throws IOException, InterruptedException {
        Step step = Step.parse(process.ask("s " + calls));
        steps.add(step);
        return step.totalNs;
    }

    /** A part of the latest steps, as many as asked for. */
    public double[] latest(int count, ToDoubleFunction<Step> part) {
        return steps.subList(steps.size() - count, steps.size()).stream()
                .mapToDouble(part)
                .toArray();
    }

    /** The weighted sum of the latest result, which all ranks must share. */
    public double checksum() throws IOException, InterruptedException {
        String[] words = process.ask("c").split(" ");
        if (words.length != 2 || !words[1].equals("same")) {
            throw new IllegalStateException(
                    "the ranks of the MPI program have different products: sum " + words[0]);
        }
        return Double.parseDouble(words[0]);
    }

    @Override
    public void close() {
        process.close();
    }
}
