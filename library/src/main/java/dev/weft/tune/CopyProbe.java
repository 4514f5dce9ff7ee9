package dev.weft.tune;

import dev.weft.fabric.ChunkMover;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.Move;
import dev.weft.fabric.Region;
import dev.weft.fabric.World;
import dev.weft.statistics.Quantiles;
import java.util.ArrayList;
import java.util.List;

/**
 * Times chunks that movers move between ranks that are threads, with their flags, as lanes do:
 * small ones and large ones, so that what a chunk costs is told from what its bytes cost.
 */
final class CopyProbe implements AutoCloseable {

    private static final long SMALL_BYTES = 32 << 10;
    private static final long LARGE_BYTES = 512 << 10;
    private static final int PIECES = 40;

    private final World world;
    private final List<Region> regions;
    private final long roomBytes;
    private int turn;

    /**
     * What copies cost.
     *
     * @param gbps 10^9 bytes a second of one thread
     * @param transferUs of a chunk besides its bytes
     */
    record Copies(double gbps, double transferUs) {}

    CopyProbe(int threads, long roomBytes) {
        this.roomBytes = roomBytes;
        this.world = World.threads(threads);
        try {
            this.regions =
                    world.call(fabric -> fabric.allocate(Region.WORDS_BYTES + 2 * roomBytes));
        } catch (RuntimeException | Error e) {
            world.close();
            throw e;
        }
    }

    /** Of one thread while others rest, or of each while all copy. */
    Copies time(boolean together) {
        double smallNs = medianNs(SMALL_BYTES, together);
        double largeNs = medianNs(LARGE_BYTES, together);
        // Where a disturbance made small ones as slow as large ones, their difference says nothing.
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
                            double[] ns = copies ? moves(fabric, bytes) : new double[0];
                            fabric.barrier();
                            return ns;
                        });
        List<Double> all = new ArrayList<>();
        for (double[] ns : taken) {
            for (double one : ns) {
                all.add(one);
            }
        }
        return Quantiles.median(all.stream().mapToDouble(Double::doubleValue).toArray());
    }

    /** From the next rank's memory, each time from another place to another. */
    private double[] moves(Fabric fabric, long bytes) {
        Region region = regions.get(fabric.rank());
        int peer = (fabric.rank() + 1) % fabric.size();
        double[] ns = new double[PIECES];
        try (ChunkMover mover = fabric.mover(ended -> {})) {
            for (int i = 0; i < PIECES; i++) {
                long place = ((long) turn * PIECES + i) % (roomBytes / bytes) * bytes;
                long at = Region.WORDS_BYTES + place;
                Move move =
                        new Move(
                                region,
                                peer,
                                at,
                                bytes,
                                fabric.rank(),
                                at + roomBytes,
                                bytes,
                                1,
                                bytes,
                                0,
                                -1);
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
