package dev.weft.bench.cpu;

import dev.weft.bench.cpu.GatherTimes.Side;
import dev.weft.bench.measure.Interleaved;
import dev.weft.compat.Place;
import dev.weft.compat.Sb2sb;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.compat.Sb2sbLayout;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.ffi.Mpi;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

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
    private final GatherTimes.Size size;
    private final Arena arena = Arena.ofShared();
    private final Matrix input;
    private final Matrix received;
    private final Sb2sb<Matrix> beside;
    private final Sb2sb<Matrix> below;

    GatherRace(Fabric fabric, Mpi mpi, GatherTimes.Size size) {
        this.fabric = fabric;
        this.mpi = mpi;
        this.size = size;
        this.input = ofRank(fabric.rank());
        this.received =
                Matrix.allocate(
                        arena, GatherTimes.TYPE, (long) size.rows() * fabric.size(), size.cols());
        this.beside = gather(Sb2sbLayout.UNTILED);
        this.below = gather(Sb2sbLayout.ROWS);
    }

    private Sb2sb<Matrix> gather(Sb2sbLayout layout) {
        return Sb2sb.prepare(
                Place.HOST,
                layout,
                fabric,
                size.rows(),
                size.cols(),
                GatherTimes.TYPE,
                ReplicaGroups.consecutive(1, fabric.size()),
                fabric.size(),
                1,
                Sb2sbConfig.DEFAULT);
    }

    /** What a rank gives. */
    private Matrix ofRank(int rank) {
        Matrix matrix = Matrix.allocate(arena, GatherTimes.TYPE, size.rows(), size.cols());
        new NormalData(19, rank).fill(matrix);
        return matrix;
    }

    GatherTimes run(boolean quick) throws IOException, InterruptedException {
        check();
        turnNs(this::byMpi, TRIAL_CALLS);
        long trialNs = turnNs(this::byMpi, TRIAL_CALLS) / TRIAL_CALLS;
        int calls = Math.clamp(TURN_NS / Math.max(1, trialNs), 3, MOST_CALLS);
        List<Interleaved.Turn> turns =
                Stream.<Runnable>of(() -> beside.call(input), () -> below.call(input), this::byMpi)
                        .map(side -> (Interleaved.Turn) () -> turnNs(side, calls) / calls)
                        .toList();
        // Counted, not timed: every rank must make the same turns.
        Interleaved.Outcome outcome =
                quick ? Interleaved.take(turns, 3, 5) : Interleaved.take(turns, 10, 41);
        check();
        return new GatherTimes(
                size,
                calls,
                outcome.rounds(),
                side(outcome, 0),
                side(outcome, 1),
                side(outcome, 2));
    }

    private static Side side(Interleaved.Outcome outcome, int side) {
        return new Side(outcome.medianNs(side), outcome.spreadNs(side), outcome.speed(side, 2));
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
        for (int r = 0; r < fabric.size(); r++) {
            Matrix expected = ofRank(r);
            long first = (long) r * size.rows();
            require("mpi", r, received.rows(first, size.rows()), expected);
            require("rows", r, rows.rows(first, size.rows()), expected);
            Matrix block = columns.block(0, size.rows(), (long) r * size.cols(), size.cols());
            require("columns", r, block, expected);
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
