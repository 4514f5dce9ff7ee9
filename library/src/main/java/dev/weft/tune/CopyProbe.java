package dev.weft.tune;

import dev.weft.fabric.World;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.util.Arrays;
import java.util.List;

/** Times moves like those of lanes; small and large chunks separate fixed costs from bytes. */
final class CopyProbe implements AutoCloseable {

    private static final long SMALL_BYTES = 32 << 10;
    private static final long LARGE_BYTES = 512 << 10;
    private static final int PIECES = 40;

    private final World world;
    private final List<Region> regions;
    private final long bufferBytes;
    private int turn;

    /**
     * What copies cost.
     *
     * @param gbps 10^9 bytes a second of one thread
     * @param transferUs microseconds of a chunk besides its bytes
     */
    record Copies(double gbps, double transferUs) {}

    CopyProbe(int threads, long bufferBytes) {
        this.bufferBytes = bufferBytes;
        this.world = World.threads(threads);
        try {
            this.regions =
                    world.call(
                            fabric ->
                                    Transport.of(fabric)
                                            .allocate(Region.WORDS_BYTES + 2 * bufferBytes));
        } catch (RuntimeException | Error e) {
            world.close();
            throw e;
        }
    }

    /** The cost for one thread alone, or for each thread while all copy. */
    Copies time(boolean together) {
        double smallNs = medianNs(SMALL_BYTES, together);
        double largeNs = medianNs(LARGE_BYTES, together);
        // The difference means nothing if a disturbance made small chunks as slow as large ones.
        double bytesNs = Math.max(largeNs / 2, largeNs - smallNs);
        double gbps = (LARGE_BYTES - SMALL_BYTES) / bytesNs;
        return new Copies(gbps, Math.max(0, smallNs - SMALL_BYTES / gbps) / 1e3);
    }

    private double medianNs(long bytes, boolean together) {
        turn++;
        List<double[]> taken =
                world.call(
                        fabric -> {
                            fabric.barrier();
                            boolean copies = together || fabric.rank() == 0;
                            double[] ns =
                                    copies ? moves(Transport.of(fabric), bytes) : new double[0];
                            fabric.barrier();
                            return ns;
                        });
        return Quantiles.median(taken.stream().flatMapToDouble(Arrays::stream).toArray());
    }

    /** Times moves from the next rank's memory, each at other offsets. */
    private double[] moves(Transport fabric, long bytes) {
        int rank = fabric.rank();
        Region region = regions.get(rank);
        int peer = (rank + 1) % fabric.size();
        double[] ns = new double[PIECES];
        try (ChunkMover mover = fabric.mover(ended -> {})) {
            for (int i = 0; i < PIECES; i++) {
                long place = ((long) turn * PIECES + i) % (bufferBytes / bytes) * bytes;
                long at = Region.WORDS_BYTES + place;
                long to = at + bufferBytes;
                Move move = new Move(region, peer, at, bytes, rank, to, bytes, 1, bytes, 0, -1);
                long began = System.nanoTime();
                mover.move(i, move, turn * PIECES + i + 1, 0);
                ns[i] = System.nanoTime() - began;
            }
        }
        return ns;
    }

    @Override
    public void close() {
        try (world) {
            world.run(fabric -> regions.get(fabric.rank()).close());
        }
    }
}
