package dev.weft.compat;

import static dev.weft.compat.FgccTest.TWO;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.compat.Fgcc.Path;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherView;
import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.lang.foreign.Arena;
import java.util.BitSet;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The steps of an FGCC call: what is moved, multiplied and stored, and by whom. */
class FgccStepsTest {

    /** Per rank two places for its own shard and two ring buffers: 4 m K, whatever M is. */
    @ParameterizedTest
    @CsvSource({"4, false", "16, false", "32, false", "16, true"})
    void noGatheredAIsStoredAnywhere(int ranks, boolean hbm) {
        long m = 64;
        long k = 512;
        long shardBytes = Matrix.contiguousBytes(DType.BF16, m, k);
        Arena arena = Arena.ofAuto();
        Matrix rhs = Matrix.allocate(arena, DType.BF16, k, 8);
        Matrix lhs = Matrix.allocate(arena, DType.BF16, m, k);
        List<Long> reachable =
                Ranks.call(
                        ranks,
                        fabric -> {
                            try (Fgcc<Matrix> prepared =
                                    Fgcc.prepare(
                                            fabric, m, k, DType.BF16, rhs, ranks, 1, hbm, TWO)) {
                                assertEquals(hbm ? Path.HBM : Path.SBUF, prepared.call(lhs).path());
                                return prepared.operator().reachableBytes();
                            }
                        });
        for (long bytes : reachable) {
            assertTrue(bytes >= 4 * shardBytes, "got " + bytes);
            assertTrue(bytes <= 4 * shardBytes + (32 << 10), "got " + bytes);
        }
    }

    /** R - 1 permutes of L x C slices to the successor; own rows first, then rank - 1, - 2, ... */
    @ParameterizedTest
    @EnumSource(Path.class)
    void theStepsAreTheSources(Path path) {
        int ranks = 4;
        Arena arena = Arena.ofAuto();
        // With fp32, no engine takes so many rows at a time that a lane has just two chunks.
        Matrix rhs = Matrix.allocate(arena, DType.FP32, 8, 8);
        Ranks.run(
                ranks,
                fabric -> {
                    try (Fgcc<Matrix> prepared = prepare(fabric, 64, rhs, path)) {
                        GatherView plan = FgccProblem.plan(prepared.operator());
                        assertEquals(2, plan.lanes().size());
                        for (Lane channel : plan.lanes()) {
                            List<Move> permutes = channel.moves();
                            int perStep = permutes.size() / (ranks - 1);
                            assertEquals(path == Path.SBUF, perStep == 2);
                            assertEquals((ranks - 1) * perStep, permutes.size());
                            for (int i = 0; i < permutes.size(); i++) {
                                int source = Math.floorMod(fabric.rank() - i / perStep, ranks);
                                assertEquals((fabric.rank() + 1) % ranks, permutes.get(i).to());
                                assertEquals(source, permutes.get(i).source());
                            }
                        }
                        List<Integer> sources = FgccProblem.sources(plan);
                        for (int step = 0; step < ranks; step++) {
                            assertEquals(
                                    Math.floorMod(fabric.rank() - step, ranks), sources.get(step));
                        }
                    }
                });
    }

    private static Fgcc<Matrix> prepare(Fabric fabric, long m, Matrix rhs, Path path) {
        boolean hbm = path == Path.HBM;
        return Fgcc.prepare(fabric, m, rhs.rows(), rhs.dtype(), rhs, fabric.size(), 1, hbm, TWO);
    }

    /** What ran, by its timeline: each channel moves its slices, each program multiplies its. */
    @ParameterizedTest
    @CsvSource({"4, SBUF", "4, HBM", "64, SBUF", "64, HBM"})
    void programsAndChannelsHaveTheirOwnSlices(int ranks, Path path) {
        int channels = FgccLayout.channels(2, ranks);
        long m = 8L * 2 * channels;
        FgccLayout layout = FgccLayout.of(path, ranks, 2, m, 8);
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(arena, ranks, m, 24, 3L * ranks, DType.BF16, DType.BF16, 9);
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (Fgcc<Matrix> prepared = prepare(fabric, m, problem.rhs(rank), path)) {
                        problem.assertBitwise(prepared.call(problem.lhs(rank)).product(), rank);
                        Timeline timeline = prepared.operator().lastResult().timeline();
                        for (int channel = 0; channel < channels; channel++) {
                            BitSet moved = rows(timeline, "lane-" + channel, Kind.TRANSFER);
                            BitSet owned = new BitSet();
                            for (int program = 0; program < 2; program++) {
                                addSlice(owned, layout, program, channel);
                            }
                            assertEquals(owned, moved, "channel " + channel);
                        }
                        for (int program = 0; program < 2; program++) {
                            String track = "compute-0 of program-" + program;
                            BitSet multiplied = rows(timeline, track, Kind.COMPUTE);
                            BitSet owned = new BitSet();
                            for (int channel = 0; channel < channels; channel++) {
                                addSlice(owned, layout, program, channel);
                            }
                            assertEquals(owned, multiplied, track);
                        }
                    }
                });
    }

    /** Rows, of any shard, that the spans of a track are about. */
    private static BitSet rows(Timeline timeline, String name, Kind kind) {
        BitSet rows = new BitSet();
        timeline.tracks().stream()
                .filter(track -> track.name().equals(name))
                .flatMap(track -> track.spans().stream())
                .filter(span -> span.kind() == kind)
                .forEach(
                        span -> {
                            int first = (int) span.firstRow();
                            rows.set(first, first + (int) span.rows());
                        });
        return rows;
    }

    private static void addSlice(BitSet rows, FgccLayout layout, int program, int channel) {
        int first = (int) layout.firstRow(0, program, channel);
        rows.set(first, first + (int) layout.loc());
    }

    /** What arrives is 2 x L x C slices, of which two of a program and channel fit the chip. */
    @Test
    void theBuffersOfTheOnChipPathFitTheChip() {
        int ranks = 4;
        long m = 64;
        long k = 512;
        long sliceBytes = Matrix.contiguousBytes(DType.BF16, m / 4, k);
        long blockOfB = Matrix.contiguousBytes(DType.BF16, k, 8);
        FgccConfig least = TWO.withOnChipBytes(2 * sliceBytes + 2 * blockOfB);
        Arena arena = Arena.ofAuto();
        Matrix rhs = Matrix.allocate(arena, DType.BF16, k, 8);
        assertEquals(Path.SBUF, least.path(ranks, m, k, 8, DType.BF16, DType.BF16, false));
        FgccConfig less = TWO.withOnChipBytes(least.onChipBytes() - 1);
        assertEquals(Path.HBM, less.path(ranks, m, k, 8, DType.BF16, DType.BF16, false));
        Ranks.run(
                ranks,
                fabric -> {
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(fabric, m, k, DType.BF16, rhs, ranks, 1, false, least)) {
                        Chunks chunks = prepared.operator().plan().chunks();
                        assertEquals(4, chunks.count(0));
                        assertEquals(m / 4, chunks.chunkRows(0));
                        long words = 32 << 10;
                        long arrivals =
                                prepared.operator().reachableBytes()
                                        - 2 * Matrix.contiguousBytes(DType.BF16, m, k);
                        assertTrue(arrivals >= 2 * 4 * sliceBytes);
                        assertTrue(arrivals <= 2 * 4 * sliceBytes + words, "got " + arrivals);
                    }
                });
    }
}
