package dev.weft.bench.peers;

import dev.weft.bench.measure.Shape;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;

/**
 * What a user has today: a C program that gathers or reduces by MPI and multiplies by OpenBLAS,
 * with one pinned rank and one thread per core. Used by one thread.
 */
public final class MpiProduct implements AutoCloseable {

    static final String SOURCE = "mpi_sgemm.c";

    private final SteppedProcess process;
    private final boolean pinned;
    private final List<Step> steps = new ArrayList<>();

    /** What MPI does before or after the product. */
    public enum Work {
        GATHER,
        REDUCE_SCATTER,
        ALL_REDUCE;

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
     * Starts it in the best way that works here.
     *
     * @param ways how to start it, best first
     */
    MpiProduct(
            List<List<String>> ways,
            Path program,
            OpenBlasLibrary library,
            Work work,
            Shape shape,
            Path folder)
            throws IOException, InterruptedException {
        SteppedProcess started = null;
        int number = 0;
        while (started == null) {
            try {
                started = start(ways.get(number), program, library, work, shape, folder);
            } catch (SteppedProcess.PeerException e) {
                number++;
                if (number == ways.size()) {
                    throw e;
                }
            }
        }
        process = started;
        pinned = number < ways.size() - 1;
    }

    private static SteppedProcess start(
            List<String> way,
            Path program,
            OpenBlasLibrary library,
            Work work,
            Shape shape,
            Path folder)
            throws IOException, InterruptedException {
        Stream<String> arguments =
                Stream.of(shape.m(), shape.n(), shape.k()).map(size -> Long.toString(size));
        List<String> command =
                Stream.concat(
                                way.stream(),
                                Stream.concat(
                                        Stream.of(program.toString(), work.label()), arguments))
                        .toList();
        Map<String, String> environment = new LinkedHashMap<>();
        environment.put("OPENBLAS_NUM_THREADS", "1");
        library.coreType().ifPresent(type -> environment.put("OPENBLAS_CORETYPE", type));
        return SteppedProcess.started("the MPI program", command, environment, folder);
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
