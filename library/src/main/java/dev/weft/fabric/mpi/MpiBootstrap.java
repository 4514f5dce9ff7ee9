package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.BuildId;
import dev.weft.fabric.memory.ControlBlock;
import dev.weft.fabric.transport.CoreShare;
import dev.weft.ffi.Affinity;
import dev.weft.ffi.Mpi;
import dev.weft.plan.Hosts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What ranks exchange when they join, by collective calls of MPI. For the progress thread. */
final class MpiBootstrap {

    /** The most ranks per host, or 0: lets one machine try out what needs several. */
    private static final int RANKS_PER_HOST = Integer.getInteger("weft.mpi.ranks.per.host", 0);

    private static final int TEXT_BYTES = 512;

    private final Mpi mpi;
    private final long comm;
    private final int rank;
    private final int ranks;

    /** By rank: the first rank on its host; set by {@link #hosts()}. */
    private long[] leaders;

    MpiBootstrap(Mpi mpi, long comm) {
        this.mpi = mpi;
        this.comm = comm;
        this.rank = mpi.rank(comm);
        this.ranks = mpi.size(comm);
    }

    void barrier() {
        mpi.barrier(comm);
    }

    /** Every rank's number, by rank. */
    long[] numbers(long own) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mine = arena.allocateFrom(ValueLayout.JAVA_LONG, own);
            MemorySegment all = arena.allocate(ValueLayout.JAVA_LONG, ranks);
            mpi.allgather(mine.address(), Long.BYTES, all.address(), comm);
            return all.toArray(ValueLayout.JAVA_LONG);
        }
    }

    /** Every rank's text, by rank. */
    List<String> texts(String own) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mine = arena.allocate(TEXT_BYTES);
            byte[] utf8 = own.getBytes(StandardCharsets.UTF_8);
            if (utf8.length >= TEXT_BYTES) {
                throw new IllegalStateException(
                        own + ": expected less than " + TEXT_BYTES + " bytes");
            }
            mine.setString(0, own);
            MemorySegment all = arena.allocate((long) TEXT_BYTES * ranks);
            mpi.allgather(mine.address(), TEXT_BYTES, all.address(), comm);
            List<String> texts = new ArrayList<>();
            for (int r = 0; r < ranks; r++) {
                texts.add(all.getString((long) TEXT_BYTES * r));
            }
            return texts;
        }
    }

    /**
     * Checks that all ranks are of one build; MPI ensures that they are of one run. In every build
     * this is the first thing that ranks exchange.
     *
     * @throws IllegalStateException on all ranks, if they are not
     */
    void requireSameBuild() {
        String mismatch = buildMismatch(numbers(ControlBlock.VERSION), numbers(BuildId.current()));
        if (mismatch != null) {
            throw new IllegalStateException(mismatch);
        }
    }

    /** How the first rank that differs from rank 0 differs; null if none does. */
    static String buildMismatch(long[] versions, long[] builds) {
        for (int r = 1; r < builds.length; r++) {
            if (versions[r] != versions[0] || builds[r] != builds[0]) {
                return """
                        rank %s is of build %s with layout version %s, rank 0 of build %s with %s: \
                        expected one and the same Weft on all hosts"""
                        .formatted(
                                r,
                                BuildId.text(builds[r]),
                                versions[r],
                                BuildId.text(builds[0]),
                                versions[0]);
            }
        }
        return null;
    }

    /**
     * The hosts, as consecutive ranks that share one according to MPI. If ranks were assigned to
     * hosts in turn, each rank counts as a host, and MPI carries messages within a host too.
     */
    Hosts hosts() {
        long local = mpi.splitByHost(comm, rank);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment leader = arena.allocateFrom(ValueLayout.JAVA_LONG, rank);
            mpi.bcast(leader.address(), Long.BYTES, mpi.byteType(), 0, local);
            leaders = numbers(leader.get(ValueLayout.JAVA_LONG, 0));
        } finally {
            mpi.free(local);
        }
        return hosts(leaders, RANKS_PER_HOST);
    }

    /**
     * Groups consecutive ranks with the same leader.
     *
     * @param leaders by rank: the first rank on its host
     * @param most the most ranks of a host, or 0
     */
    static Hosts hosts(long[] leaders, int most) {
        List<Integer> sizes = new ArrayList<>(List.of(1));
        for (int r = 1; r < leaders.length; r++) {
            boolean same = leaders[r] == leaders[r - 1];
            if (same && (most == 0 || sizes.getLast() < most)) {
                sizes.set(sizes.size() - 1, sizes.getLast() + 1);
            } else {
                sizes.add(1);
            }
        }
        return new Hosts(sizes);
    }

    /** How this rank shares cores with ranks of its host that may use the same ones. */
    CoreShare cores() {
        boolean known = Affinity.unavailable().isEmpty();
        long[] digests = numbers(known ? Arrays.hashCode(Affinity.allowed()) : 0);
        int index = 0;
        int sharers = 0;
        int place = 0;
        for (int r = 0; r < ranks; r++) {
            boolean here = leaders[r] == leaders[rank];
            boolean shares = here && digests[r] == digests[rank];
            index += shares && r < rank ? 1 : 0;
            sharers += shares ? 1 : 0;
            place += here && r < rank ? 1 : 0;
        }
        return new CoreShare(index, sharers, place);
    }
}
