package dev.weft.stress;

import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.CoreShare;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Hosts;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.function.IntConsumer;

/** A rank's fabric in which its case's fault happens; otherwise the one below. */
final class FaultyFabric implements Transport {

    private final Transport below;
    private final Injector injector;

    FaultyFabric(Transport below, Injector injector) {
        this.below = below;
        this.injector = injector;
    }

    @Override
    public Region allocate(long bytes) {
        injector.at(Fault.Phase.ALLOCATION);
        return below.allocate(bytes);
    }

    @Override
    public Region around(MemorySegment words) {
        return below.around(words);
    }

    @Override
    public ChunkMover mover(IntConsumer ended) {
        return new FaultyChunkMover(below, below.mover(ended), injector);
    }

    @Override
    public void publish(Region region, long offset, int value) {
        injector.dawdle();
        Case run = injector.run();
        if (run.startsAreChunks() && offset == 0 && value == run.faultCall()) {
            publishStart(run.fault().phase(), region, value);
        } else {
            below.publish(region, offset, value);
        }
    }

    /** Where an operator has no lanes, its start word is the first and the last that it says. */
    private void publishStart(Fault.Phase phase, Region region, int value) {
        boolean chunk = phase == Fault.Phase.FIRST_CHUNK || phase == Fault.Phase.LAST_CHUNK;
        if (chunk) {
            injector.at(phase);
        }
        if (injector.now(Fault.Kind.STALL, phase)) {
            injector.hang();
        }
        if (injector.now(Fault.Kind.CORRUPT, phase)) {
            below.publish(region, 0, injector.nonsense(value));
            Injector.sleepMicros(FaultyChunkMover.SEEN_MICROS);
        }
        if (injector.now(Fault.Kind.DROP, phase)) {
            return;
        }
        below.publish(region, 0, value);
        if (injector.now(Fault.Kind.DUPLICATE, phase)) {
            below.publish(region, 0, value);
        }
    }

    @Override
    public void signal(Region region, int home, long offset, int value) {
        injector.dawdle();
        below.signal(region, home, offset, value);
    }

    @Override
    public void barrier() {
        injector.dawdle();
        below.barrier();
    }

    @Override
    public long[] exchange(long value) {
        injector.dawdle();
        return below.exchange(value);
    }

    @Override
    public Transport split(ReplicaGroups groups) {
        return new FaultyFabric(below.split(groups), injector);
    }

    @Override
    public void await(Region region, int home, long offset, int value, Awaited what) {
        below.await(region, home, offset, value, what);
    }

    @Override
    public boolean reached(Region region, int home, long offset, int value) {
        return below.reached(region, home, offset, value);
    }

    @Override
    public boolean reached(Region region, int home, long offset, int value, Awaited what) {
        return below.reached(region, home, offset, value, what);
    }

    @Override
    public void checkPeers() {
        below.checkPeers();
    }

    @Override
    public boolean isGone(int rank) {
        return below.isGone(rank);
    }

    @Override
    public RowGather rowGather() {
        return below.rowGather();
    }

    @Override
    public int rank() {
        return below.rank();
    }

    @Override
    public int size() {
        return below.size();
    }

    @Override
    public int worldSize() {
        return below.worldSize();
    }

    @Override
    public int worldRank(int rank) {
        return below.worldRank(rank);
    }

    @Override
    public String kind() {
        return below.kind();
    }

    @Override
    public Hosts hosts() {
        return below.hosts();
    }

    @Override
    public CoreShare cores() {
        return below.cores();
    }

    @Override
    public Duration deadline() {
        return below.deadline();
    }

    @Override
    public long ownCpuNs() {
        return below.ownCpuNs();
    }

    @Override
    public void worked() {
        below.worked();
    }

    @Override
    public void fail(Throwable cause) {
        below.fail(cause);
    }

    @Override
    public void close() {
        below.close();
    }
}
