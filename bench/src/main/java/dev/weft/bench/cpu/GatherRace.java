package dev.weft.bench.cpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.compat.Sb2sb;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.ffi.Mpi;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Weft's gathers and MPI_Allgather on the same ranks, in turns. A turn is many calls in a row, as
 * programs make them, since one call takes microseconds. The bytes are compared before and after.
 * Collective; used by one thread of each rank.
 */
final class GatherRace implements AutoCloseable {

    /** A turn lasts about so long on the side that is calibrated, MPI. */
    private static final long TURN_NS = 20_000_000;

    private static final int MOST_CALLS = 5_000;
    private static final int TRIAL_CALLS = 100;

    private final Fabric fabric;
    private final Mpi mpi;
    private final GatherSize size;
    private final Arena arena = Arena.ofShared();
    private final Matrix input;
    private final Matrix received;
    private final Sb2sb<Matrix> beside;
    private final Sb2sb<Matrix> below;

    GatherRace(Fabric fabric, Mpi mpi, GatherSize size) {
        this.fabric = fabric;
        this.mpi = mpi;
        this.size = size;
        int ranks = fabric.size();
        ReplicaGroups all = ReplicaGroups.consecutive(1, ranks);
        this.input = Matrix.allocate(arena, GatherSize.TYPE, size.rows(), size.cols());
        fill(input, fabric.rank());
        this.received =
                Matrix.allocate(arena, GatherSize.TYPE, (long) size.rows() * ranks, size.cols());
        this.beside =
                Sb2sb.untiled(
                        fabric,
                        size.rows(),
                        size.cols(),
                        GatherSize.TYPE,
                        all,
                        ranks,
                        Sb2sbConfig.DEFAULT);
        this.below =
                Sb2sb.rows(
                        fabric,
                        size.rows(),
                        size.cols(),
                        GatherSize.TYPE,
                        all,
                        ranks,
                        Sb2sbConfig.DEFAULT);
    }

    private static void fill(Matrix matrix, int rank) {
        new NormalData(19, rank).fill(matrix);
    }

    GatherTimes run(boolean quick) throws IOException, InterruptedException {
        check();
        turnNs(this::byMpi, TRIAL_CALLS);
        long trialNs = turnNs(this::byMpi, TRIAL_CALLS) / TRIAL_CALLS;
        int calls = Math.clamp(TURN_NS / Math.max(1, trialNs), 3, MOST_CALLS);
        Map<String, Runnable> sides = new LinkedHashMap<>();
        sides.put(GatherTimes.COLUMNS, () -> beside.call(input));
        sides.put(GatherTimes.ROWS, () -> below.call(input));
        sides.put(GatherTimes.MPI, this::byMpi);
        List<Interleaved.Turn> turns =
                sides.values().stream()
                        .map(side -> (Interleaved.Turn) () -> turnNs(side, calls) / calls)
                        .toList();
        // Counted, not timed: every rank must make the same turns.
        Interleaved.Outcome outcome =
                quick ? Interleaved.take(turns, 3, 5) : Interleaved.take(turns, 10, 41);
        check();
        Map<String, GatherTimes.Side> found = new LinkedHashMap<>();
        int mpiSide = sides.size() - 1;
        for (String name : sides.keySet()) {
            int side = found.size();
            found.put(
                    name,
                    new GatherTimes.Side(
                            outcome.medianNs(side),
                            outcome.spreadNs(side),
                            outcome.speed(side, mpiSide)));
        }
        return new GatherTimes(size, calls, outcome.rounds(), found);
    }

    /** So many calls in a row; the time of the slowest rank, the same on all. */
    private long turnNs(Runnable call, int calls) {
        fabric.barrier();
        long startNs = System.nanoTime();
        for (int i = 0; i < calls; i++) {
            call.run();
        }
        long ownNs = System.nanoTime() - startNs;
        return Arrays.stream(fabric.exchange(ownNs)).max().orElseThrow();
    }

    private void byMpi() {
        mpi.allgather(input.data().address(), size.bytes(), received.data().address(), mpi.world());
    }

    /** Ends the bench unless all three have every rank's bytes. */
    private void check() {
        byMpi();
        Matrix columns = beside.call(input);
        Matrix rows = below.call(input);
        Matrix expected = Matrix.allocate(arena, GatherSize.TYPE, size.rows(), size.cols());
        for (int r = 0; r < fabric.size(); r++) {
            fill(expected, r);
            long first = (long) r * size.rows();
            require(GatherTimes.MPI, r, received.rows(first, size.rows()), expected);
            require(GatherTimes.ROWS, r, rows.rows(first, size.rows()), expected);
            Matrix block = columns.block(0, size.rows(), (long) r * size.cols(), size.cols());
            require(GatherTimes.COLUMNS, r, block, expected);
        }
    }

    private void require(String side, int source, Matrix seen, Matrix expected) {
        if (!seen.bitwiseEquals(expected)) {
            throw new IllegalStateException(
                    "wrong bytes: rank %d has other ones of rank %d by %s, %s"
                            .formatted(fabric.rank(), source, side, size.describe()));
        }
    }

    @Override
    public void close() {
        beside.close();
        below.close();
        arena.close();
    }
}
