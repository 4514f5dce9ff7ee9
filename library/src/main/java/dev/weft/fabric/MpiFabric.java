package dev.weft.fabric;

import dev.weft.plan.Group;
import dev.weft.plan.Hosts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * Ranks that MPI has started, on one host or many. Those of one host share memory, as processes do;
 * words and rectangles for other hosts go by the mail.
 */
final class MpiFabric extends MemoryFabric {

    private final MpiProcess process;
    private final MpiMail mail;
    private final Path folder;
    private final Hosts hosts;
    private final int firstMate;
    private final int endMate;
    private boolean left;

    private MpiFabric(
            String id,
            Group group,
            int rank,
            MemoryRegion control,
            Health health,
            MpiProcess process,
            MpiMail mail) {
        super(id, group, rank, control, health);
        this.process = process;
        this.mail = mail;
        this.folder = process.folder();
        this.hosts = hostsOf(process.hosts(), group);
        int host = hosts.hostOf(rank);
        this.firstMate = hosts.first(host);
        this.endMate = firstMate + hosts.size(host);
    }

    /** The world's fabric. */
    static MpiFabric world(MpiProcess process, MemoryRegion control, Health health, MpiMail mail) {
        return new MpiFabric(
                WORLD_ID,
                Group.world(process.hosts().ranks()),
                process.rank(),
                control,
                health,
                process,
                mail);
    }

    /** How the ranks of a group lie on the world's hosts. */
    private static Hosts hostsOf(Hosts world, Group group) {
        List<Integer> sizes = new ArrayList<>();
        int latest = -1;
        for (int r = 0; r < group.size(); r++) {
            int host = world.hostOf(group.worldRank(r));
            if (host == latest) {
                sizes.set(sizes.size() - 1, sizes.getLast() + 1);
            } else {
                sizes.add(1);
            }
            latest = host;
        }
        return new Hosts(sizes);
    }

    @Override
    public String kind() {
        return "mpi";
    }

    @Override
    public Hosts hosts() {
        return hosts;
    }

    @Override
    public CoreShare cores() {
        return process.cores();
    }

    @Override
    public long ownCpuNs() {
        return mail.cpuNs();
    }

    @Override
    MemoryFabric part(String id, Group group, int rank, MemoryRegion control) {
        return new MpiFabric(id, group, rank, control, health, process, mail);
    }

    @Override
    MemoryRegion allocateParts(String name, long bytesWithHeader) {
        Arena arena = Arena.ofShared();
        MemorySegment[] whole = new MemorySegment[size()];
        try {
            if (endMate - firstMate == 1) {
                whole[rank()] = arena.allocate(bytesWithHeader, MemoryRegion.HEADER_BYTES);
                worked();
                // As those do who have mates.
                barrier();
                barrier();
            } else {
                new SharedParts(this, folder, name)
                        .map(bytesWithHeader, firstMate, endMate, whole, arena);
            }
            mirror(whole, firstMate, endMate, arena);
        } catch (RuntimeException | Error e) {
            arena.close();
            throw e;
        }
        return register(key(name), whole, arena);
    }

    private MemoryRegion register(long key, MemorySegment[] whole, Arena arena) {
        MpiRegion[] known = new MpiRegion[1];
        MemoryRegion region =
                new MemoryRegion(key, firstMate, endMate, whole, () -> mail.letGo(known[0]));
        known[0] = new MpiRegion(region, group, worldRank(rank()), arena::close);
        mail.register(known[0]);
        try {
            // Nobody writes before everybody knows the region.
            barrier();
            return region;
        } catch (RuntimeException | Error e) {
            // Freed when no peer can write to it any more: one may have passed the barrier.
            region.close();
            throw e;
        }
    }

    /** Room for the words of ranks on other hosts. */
    static void mirror(MemorySegment[] whole, int firstMate, int endMate, Arena arena) {
        for (int r = 0; r < whole.length; r++) {
            if (r < firstMate || r >= endMate) {
                whole[r] =
                        arena.allocate(
                                MemoryRegion.HEADER_BYTES + Region.WORDS_BYTES,
                                MemoryRegion.HEADER_BYTES);
            }
        }
    }

    /** 64 bits of a name (FNV-1a): the same on every rank. */
    static long key(String name) {
        long hash = 0xCBF2_9CE4_8422_2325L;
        for (int i = 0; i < name.length(); i++) {
            hash = (hash ^ name.charAt(i)) * 0x100_0000_01B3L;
        }
        return hash;
    }

    @Override
    void sendWord(MemoryRegion region, int home, long offset, int value) {
        MpiChannel channel = mail.channel(worldRank(home));
        MpiLetter letter = channel.take();
        letter.word(MpiLetter.WORD, region.key(), offset, value);
        channel.post(letter);
        mail.posted();
    }

    @Override
    void sendPublished(MemoryRegion region, long offset, int value) {
        for (int r = 0; r < size(); r++) {
            if (!region.isMapped(r)) {
                MpiChannel channel = mail.channel(worldRank(r));
                MpiLetter letter = channel.take();
                letter.word(MpiLetter.PUBLISHED, region.key(), offset, value);
                channel.post(letter);
            }
        }
        mail.posted();
    }

    @Override
    void sendValue(MemoryRegion region, long offset, long value) {
        for (int r = 0; r < size(); r++) {
            if (!region.isMapped(r)) {
                MpiChannel channel = mail.channel(worldRank(r));
                MpiLetter letter = channel.take();
                letter.value(MpiLetter.VALUE, region.key(), offset, value);
                channel.post(letter);
            }
        }
    }

    /** Who forwards is not to blame for one who sends nothing. */
    @Override
    int silentPeer() {
        int silent = -1;
        for (int r = 0; r < size(); r++) {
            if (mail.isSilent(worldRank(r), health.deadlineNs() / 2)) {
                if (silent >= 0) {
                    return -1;
                }
                silent = worldRank(r);
            }
        }
        return silent;
    }

    @Override
    long silentMs(int worldRank) {
        return mail.silentMs(worldRank);
    }

    @Override
    public Courier courier(IntConsumer ended) {
        return hosts.count() == 1 ? super.courier(ended) : new MpiCourier(this, mail, ended);
    }

    @Override
    public RowGather rowGather() {
        // Of all ranks: a part of the world would need a communicator of its own.
        return size() == worldSize() ? process.rowGather(this) : null;
    }

    @Override
    public void close() {
        if (id.equals(WORLD_ID)) {
            if (!left) {
                left = true;
                process.leave(this);
            }
        } else {
            super.close();
        }
    }

    /** By the process, once nobody needs this rank any more. */
    void closeWords() {
        super.close();
    }
}
