package dev.weft.bench.cpu;

import dev.weft.bench.measure.Figures;
import dev.weft.cli.message.RankLines;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/**
 * What one call of each side took, by the slowest rank. Immutable; any thread may call it.
 *
 * @param calls in a row that one turn of a side makes
 * @param rounds that counted
 * @param columns Weft, shard beside shard
 * @param rows Weft, shard below shard
 * @param mpi MPI_Allgather, which puts shard below shard
 */
record GatherTimes(Size size, int calls, int rounds, Side columns, Side rows, Side mpi) {

    static final DType TYPE = DType.BF16;

    /** The first shape of the source's tests. */
    static final Size SOURCE = new Size(128, 512);

    /** What each rank gives: 1 KiB to 1 MiB. */
    static final List<Size> SIZES =
            List.of(new Size(8, 64), new Size(32, 256), SOURCE, new Size(128, 4096));

    /** What each rank gives, as [rows, cols] of bf16. */
    record Size(int rows, int cols) {

        int bytes() {
            return rows * cols * TYPE.bytes();
        }

        String describe() {
            String size = bytes() < 1 << 20 ? (bytes() >> 10) + " KiB" : (bytes() >> 20) + " MiB";
            return "%s each, [%s, %s] %s".formatted(size, rows, cols, TYPE.label());
        }
    }

    /**
     * One side.
     *
     * @param speed over that of MPI: the median of the ratios of the rounds
     */
    record Side(double medianNs, double spreadNs, double speed) {}

    /** For {@link #read}. */
    List<String> lines() {
        return RankLines.of(0, this);
    }

    /** Those that lines tell; mpirun may print others. */
    static List<GatherTimes> read(List<String> lines) {
        List<GatherTimes> all = new ArrayList<>();
        RankLines messages =
                new RankLines(
                        List.of(GatherTimes.class), (rank, times) -> all.add((GatherTimes) times));
        lines.forEach(messages::take);
        return all;
    }

    /** The figures of a row: the side as Weft, MPI as the peer. */
    Figures figures(Side weft) {
        return new Figures()
                .with("weftMedianNs", weft.medianNs)
                .with("weftSpreadNs", weft.spreadNs)
                .with("peerMedianNs", mpi.medianNs)
                .with("peerSpreadNs", mpi.spreadNs)
                .with("bytesPerRank", size.bytes())
                .with("callsPerTurn", calls)
                .with("rounds", rounds);
    }
}
