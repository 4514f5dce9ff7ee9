package dev.weft.op;

import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.LargePages;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Hosts;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/**
 * Packs a B. Where the ranks of a host all give the same B, there is one packed copy for all of
 * them, in the first one's memory, and each packs a part of it; otherwise each rank packs its own.
 * Collective.
 *
 * <p>Order: the barrier after packing releases every part to every rank.
 */
record SharedB(Transport fabric, Gemm gemm) {

    /** A large B takes its time: peers that wait hear this often that it goes on. */
    private static final int STEPS = 16;

    /** A packed B, and its region; null where the copy is this rank's own, in the arena. */
    record Packed(PackedB b, Region region) {}

    Packed pack(Matrix b, boolean transposed, Arena arena) {
        long k = transposed ? b.cols() : b.rows();
        long n = transposed ? b.rows() : b.cols();
        long bytes = gemm.packedBytes(k, n);
        Hosts hosts = fabric.hosts();
        int hostFirst = hosts.first(hosts.hostOf(fabric.rank()));
        int hostSize = hosts.size(hosts.hostOf(fabric.rank()));
        if (fabric.size() > hosts.count() && sameOnAHost(b, k, n, transposed)) {
            Region region = fabric.allocate(fabric.rank() == hostFirst ? bytes : 0);
            try {
                PackedB packed = gemm.packed(k, n, region.part(hostFirst));
                // Unlike engines, or unlike block sizes, read unlike copies.
                if (same(packed.layout())) {
                    fill(packed, b, transposed, fabric.rank() - hostFirst, hostSize);
                    fabric.barrier();
                    return new Packed(packed, region);
                }
            } catch (RuntimeException | Error e) {
                region.close();
                throw e;
            }
            region.close();
        }
        PackedB own = gemm.packed(k, n, LargePages.allocate(bytes, arena));
        fill(own, b, transposed, 0, 1);
        return new Packed(own, null);
    }

    private void fill(PackedB packed, Matrix b, boolean transposed, int part, int parts) {
        for (int step = 0; step < STEPS; step++) {
            packed.fill(b, transposed, part * STEPS + step, parts * STEPS);
            fabric.worked();
        }
    }

    private boolean sameOnAHost(Matrix b, long k, long n, boolean transposed) {
        // The first rank's memory must hold what any rank's engine needs.
        long bytes = gemm.packedBytes(k, n);
        long kind = Agreement.digest(k, n, transposed ? 1 : 0, b.dtype().ordinal(), bytes);
        if (!same(kind)) {
            return false;
        }
        // Threads often give one and the same matrix: no need to read it.
        boolean oneMemory = fabric.kind().equals("threads") && b.data().isNative();
        if (same(Agreement.digest(oneMemory ? b.data().address() : fabric.rank(), b.rowPitch()))) {
            return true;
        }
        long[] digest = MatrixDigest.of(b);
        return same(digest[0]) & same(digest[1]);
    }

    /** Whether the ranks of every host agree among themselves: the same answer on every rank. */
    private boolean same(long value) {
        long[] values = fabric.exchange(value);
        Hosts hosts = fabric.hosts();
        for (int r = 1; r < values.length; r++) {
            if (hosts.shareMemory(r - 1, r) && values[r] != values[r - 1]) {
                return false;
            }
        }
        return true;
    }
}
