package dev.weft.fabric.mpi;

import dev.weft.fabric.CoreShare;
import dev.weft.fabric.memory.BuildId;
import dev.weft.fabric.memory.ControlBlock;
import dev.weft.ffi.Mpi;
import dev.weft.plan.Hosts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What ranks tell each other when they join, by collective calls of MPI. The progress thread's. */
final class MpiBootstrap {

    /**
     * As if every host had this many ranks, to try out on one machine what needs several. Only ever
     * makes groups smaller than the real hosts.
     */
    private static final int RANKS_PER_HOST = Integer.getInteger("weft.mpi.ranks.per.host", 0);

    private static final int TEXT_BYTES = 512;

    private final Mpi mpi;
    private final long comm;
    private final int rank;
    private final int ranks;

    /** By rank: the first rank on its host, once asked for. */
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
     * MPI has seen to it that these are the ranks of one run; that they are of one build is for
     * them to find out. The first that they ask each other, in every build.
     *
     * @throws IllegalStateException on all ranks alike
     */
    void requireSameBuild() {
        String stranger = stranger(numbers(ControlBlock.VERSION), numbers(BuildId.current()));
        if (stranger != null) {
            throw new IllegalStateException(stranger);
        }
    }

    /** Null where all ranks are as rank 0, otherwise what the first other one is. */
    static String stranger(long[] versions, long[] builds) {
        for (int r = 1; r < builds.length; r++) {
            if (versions[r] != versions[0] || builds[r] != builds[0]) {
                return "rank "
                        + r
                        + " is of build "
                        + BuildId.text(builds[r])
                        + " with layout version "
                        + versions[r]
                        + ", rank 0 of build "
                        + BuildId.text(builds[0])
                        + " with "
                        + versions[0]
                        + ": expected one and the same Weft on all hosts";
            }
        }
        return null;
    }

    /**
     * Consecutive ranks that MPI says share a host. Where ranks were dealt to hosts in turn each is
     * its own group, and messages between ranks of one host go the way that MPI has for them.
     */
    Hosts hosts() {
        long mates = mpi.splitByHost(comm, rank);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment leader = arena.allocateFrom(ValueLayout.JAVA_LONG, rank);
            mpi.bcast(leader.address(), Long.BYTES, mpi.byteType(), 0, mates);
            leaders = numbers(leader.get(ValueLayout.JAVA_LONG, 0));
        } finally {
            mpi.free(mates);
        }
        return hosts(leaders, RANKS_PER_HOST);
    }

    /**
     * @param leaders by rank: the first rank on its host
     * @param most ranks that a host may have, or 0
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

    /** Ranks on one host that were bound to the same cores, or to none in particular. */
    CoreShare cores() {
        long[] digests = numbers(MpiProcess.coresDigest());
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
