package dev.weft.op;

import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.LargePages;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Hosts;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Packs a B. If all ranks of a host give the same B, they share one packed copy in the first one's
 * memory, and each packs a part of it; otherwise each rank packs its own. Collective.
 *
 * <p>Order: the barrier after packing releases every part to every rank.
 */
record SharedB(Transport fabric, Gemm gemm) {

    /** Packing a large B is slow: it is done in this many steps, and waiting peers hear of each. */
    private static final int STEPS = 16;

    /**
     * A packed B.
     *
     * @param region null if the copy is in an arena
     * @param shared whether it is one copy for all ranks of the host, in the first one's part
     * @param type the type of the B that was packed; null if it has scales or blocks
     */
    record Packed(PackedB b, Region region, boolean shared, DType type, boolean transposed) {

        Packed ofScaled() {
            return new Packed(b, region, shared, null, transposed);
        }

        /** Refuses a B that cannot replace the packed one. */
        void check(String name, Matrix other) {
            if (type == null) {
                throw new UnsupportedOperationException(
                        "%s has scales and cannot be replaced: expected an operator that is prepared anew"
                                .formatted(name));
            }
            MatmulBuilder.checkAccess(other);
            long rows = transposed ? b.n() : b.k();
            long cols = transposed ? b.k() : b.n();
            if (other.rows() != rows || other.cols() != cols || other.dtype() != type) {
                throw new IllegalArgumentException(
                        "%s is to be replaced by %s: expected [%d, %d] %s, as it was given"
                                .formatted(name, other.describe(), rows, cols, type.label()));
            }
        }
    }

    /** A B that only this rank multiplies by. */
    static Packed own(Gemm gemm, Matrix b, boolean transposed, Arena arena) {
        return new Packed(gemm.pack(b, transposed, arena), null, false, b.dtype(), transposed);
    }

    /**
     * What is packed.
     *
     * @param elements the bytes of the blocks if it has any, which are [N, K]
     */
    record Source(Matrix elements, boolean transposed, QuantizedMatrix blocks) {

        static Source of(QuantizedMatrix b) {
            long bytes = b.type().rowBytes(b.cols());
            Matrix all = new Matrix(b.data(), DType.E4M3, b.rows(), bytes, b.rowPitch());
            return new Source(all, true, b);
        }

        long k() {
            if (blocks != null) {
                return blocks.cols();
            }
            return transposed ? elements.cols() : elements.rows();
        }

        long n() {
            return transposed ? elements.rows() : elements.cols();
        }

        /** What an engine is told; one of blocks knows these. */
        DType packedType() {
            return blocks == null ? elements.dtype() : DType.FP32;
        }

        private void fill(PackedB packed, int part, int parts) {
            if (blocks == null) {
                packed.fill(elements, transposed, part, parts);
            } else {
                packed.fill(blocks, part, parts);
            }
        }
    }

    Packed pack(Matrix b, boolean transposed, Arena arena) {
        return pack(new Source(b, transposed, null), arena);
    }

    /**
     * @param arena for a copy of this rank's own; null if peers are to reach it
     */
    Packed pack(Source b, Arena arena) {
        long k = b.k();
        long n = b.n();
        DType type = b.blocks() == null ? b.elements().dtype() : null;
        long bytes = gemm.packedBytes(k, n, b.packedType());
        Hosts hosts = fabric.hosts();
        int hostFirst = hosts.first(hosts.hostOf(fabric.rank()));
        int hostSize = hosts.size(hosts.hostOf(fabric.rank()));
        if (fabric.size() > hosts.count() && sameOnAHost(b, k, n)) {
            Region region = fabric.allocate(fabric.rank() == hostFirst ? bytes : 0);
            try {
                PackedB packed = gemm.packed(k, n, b.packedType(), region.part(hostFirst));
                // Copies of unlike engines or block sizes have unlike layouts.
                if (same(packed.layout())) {
                    fill(packed, b, fabric.rank() - hostFirst, hostSize);
                    fabric.barrier();
                    return new Packed(packed, region, true, type, b.transposed());
                }
            } catch (RuntimeException | Error e) {
                region.close();
                throw e;
            }
            region.close();
        }
        Region region = arena == null ? fabric.allocate(bytes) : null;
        try {
            MemorySegment memory =
                    region == null ? LargePages.allocate(bytes, arena) : region.part(fabric.rank());
            PackedB own = gemm.packed(k, n, b.packedType(), memory);
            fill(own, b, 0, 1);
            return new Packed(own, region, false, type, b.transposed());
        } catch (RuntimeException | Error e) {
            if (region != null) {
                region.close();
            }
            throw e;
        }
    }

    /**
     * Packs another B into the same memory, once no rank reads it any more. Collective: if a rank's
     * B does not fit, all ranks refuse with an {@link IllegalArgumentException} or {@link
     * UnsupportedOperationException}, and nothing is replaced. After any other exception the memory
     * may hold parts of both.
     */
    void replace(String name, Packed packed, Matrix other) {
        agree(name, packed, other);
        Source b = new Source(other, packed.transposed(), null);
        Hosts hosts = fabric.hosts();
        int host = hosts.hostOf(fabric.rank());
        boolean shared = packed.shared();
        if (shared && !sameOnAHost(b, packed.b().k(), packed.b().n())) {
            throw new IllegalArgumentException(
                    "ranks of one host replace the B that they share by different ones: expected"
                            + " one B for all of them, or operators that are prepared anew");
        }
        // Ranks get here only after their latest call: none reads the old B any more.
        fabric.barrier();
        int part = shared ? fabric.rank() - hosts.first(host) : 0;
        fill(packed.b(), b, part, shared ? hosts.size(host) : 1);
        // Releases every part to every rank, as in pack.
        fabric.barrier();
    }

    private void agree(String name, Packed packed, Matrix b) {
        RuntimeException refusal = null;
        try {
            packed.check(name, b);
        } catch (IllegalArgumentException | UnsupportedOperationException e) {
            refusal = e;
        }
        long[] refusals = fabric.exchange(refusal == null ? 0 : 1);
        if (refusal != null) {
            throw refusal;
        }
        for (int r = 0; r < refusals.length; r++) {
            if (refusals[r] != 0) {
                throw new IllegalArgumentException(
                        "rank %d cannot replace %s: expected one that fits on every rank"
                                .formatted(r, name));
            }
        }
    }

    private void fill(PackedB packed, Source b, int part, int parts) {
        for (int step = 0; step < STEPS; step++) {
            b.fill(packed, part * STEPS + step, parts * STEPS);
            fabric.worked();
        }
    }

    private boolean sameOnAHost(Source source, long k, long n) {
        Matrix b = source.elements();
        // The first rank's memory must hold what any rank's engine needs.
        long bytes = gemm.packedBytes(k, n, source.packedType());
        long kind = Agreement.digest(k, n, source.transposed() ? 1 : 0, b.dtype().ordinal(), bytes);
        if (!same(kind)) {
            return false;
        }
        // Threads often give the very same matrix: no need to read it.
        boolean oneMemory = fabric.kind().equals("threads") && b.data().isNative();
        if (same(Agreement.digest(oneMemory ? b.data().address() : fabric.rank(), b.rowPitch()))) {
            return true;
        }
        long[] digest = MatrixDigest.of(b);
        return same(digest[0]) & same(digest[1]);
    }

    /** Whether the ranks agree within every host; the same answer on every rank. */
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
