package dev.weft.cli.launch;

import dev.weft.cli.message.RecordBytes;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** Collects the records of every rank on the first one, over any fabric. */
public final class Collected {

    /** Words of arrival, one per rank, come first. */
    private static final long WORD_BYTES = 128;

    private Collected() {}

    /** Collective: every rank's record, by rank, on rank 0; an empty list elsewhere. */
    @SuppressWarnings("unchecked")
    public static <R extends Record> List<R> atFirst(Fabric world, R record) throws IOException {
        List<R> all = new ArrayList<>();
        for (byte[] one : bytesAtFirst(world, RecordBytes.of(record))) {
            all.add((R) RecordBytes.read(record.getClass(), one));
        }
        return all;
    }

    private static List<byte[]> bytesAtFirst(Fabric world, byte[] own) {
        Transport fabric = Transport.of(world);
        long[] lengths = fabric.exchange(own.length);
        int ranks = lengths.length;
        long[] places = new long[ranks + 1];
        places[0] = WORD_BYTES * ranks;
        for (int r = 0; r < ranks; r++) {
            places[r + 1] = Math.ceilDiv(places[r] + lengths[r], 8) * 8;
        }
        int rank = fabric.rank();
        long bytes = rank == 0 ? places[ranks] : WORD_BYTES + own.length;
        try (Region region = fabric.allocate(bytes);
                ChunkMover mover = fabric.mover(ended -> fabric.worked())) {
            MemorySegment part = region.part(rank);
            long from = rank == 0 ? places[0] : WORD_BYTES;
            MemorySegment.copy(own, 0, part, ValueLayout.JAVA_BYTE, from, own.length);
            if (rank > 0) {
                Move move =
                        new Move(
                                region,
                                rank,
                                from,
                                own.length,
                                0,
                                places[rank],
                                own.length,
                                1,
                                own.length,
                                WORD_BYTES * rank,
                                -1);
                mover.move(0, move, 1, 0);
                mover.awaitAll();
            }
            List<byte[]> all = rank == 0 ? read(fabric, region, lengths, places) : List.of();
            fabric.barrier();
            return all;
        }
    }

    private static List<byte[]> read(
            Transport fabric, Region region, long[] lengths, long[] places) {
        List<byte[]> all = new ArrayList<>();
        for (int r = 0; r < lengths.length; r++) {
            if (r > 0) {
                fabric.await(region, 0, WORD_BYTES * r, 1, Awaited.of("the report", r));
            }
            MemorySegment bytes = region.part(0).asSlice(places[r], lengths[r]);
            all.add(bytes.toArray(ValueLayout.JAVA_BYTE));
        }
        return all;
    }
}
