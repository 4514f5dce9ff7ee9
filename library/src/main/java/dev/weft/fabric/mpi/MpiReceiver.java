package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.Health;
import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.memory.Words;
import dev.weft.fabric.mpi.MpiMessage.Field;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Carries out the messages that one rank receives: stores words, answers gets, receives rectangles
 * and notes the states of peers. Used by the progress thread; any thread may register movers.
 */
final class MpiReceiver {

    private final int self;
    private final MpiRegions regions;
    private final ConcurrentHashMap<Integer, MpiChunkMover> movers = new ConcurrentHashMap<>();
    private MpiFabric world;
    private Health health;

    MpiReceiver(int self, MpiRegions regions) {
        this.self = self;
        this.regions = regions;
    }

    /** Sets the world's fabric, before the first message. */
    void start(MpiFabric fabric) {
        world = fabric;
        health = fabric.health;
    }

    void register(MpiChunkMover mover) {
        movers.put(mover.id(), mover);
    }

    void forget(MpiChunkMover mover) {
        movers.remove(mover.id());
    }

    /** Reads the message of {@code bytes} bytes that a channel has received. */
    void read(MpiChannel channel, int bytes) {
        MpiMessage message = channel.received;
        int peer = channel.peer;
        switch (message.kind()) {
            case MpiMessage.WORK -> health.peerWorked(peer, message.get(Field.WIDE));
            case MpiMessage.FAILED ->
                    health.peerFailed(
                            peer, message.number(Field.VALUE), message.failureText(bytes));
            case MpiMessage.GET -> answer(channel, message);
            case MpiMessage.PUT -> {
                MpiRegion region = regions.get(message.key());
                channel.newArrival().cut(region.ownAddress(self) + message.get(Field.AT));
            }
            case MpiMessage.WORD,
                    MpiMessage.PUBLISHED,
                    MpiMessage.VALUE,
                    MpiMessage.RELEASED,
                    MpiMessage.LEFT ->
                    channel.newArrival();
            default ->
                    throw new IllegalStateException(
                            "rank " + peer + " sent a message of kind " + message.kind());
        }
    }

    private void answer(MpiChannel channel, MpiMessage get) {
        MpiMessage put = channel.newMessage();
        put.answer(get, regions.get(get.key()).ownAddress(self) + get.get(Field.WIDE));
        channel.send(put);
    }

    /** Applies, in order, the arrivals of a channel that are complete. */
    void applyComplete(MpiChannel channel) {
        for (MpiMessage arrival = channel.nextComplete();
                arrival != null;
                arrival = channel.nextComplete()) {
            apply(channel.peer, arrival);
            channel.recycleArrival(arrival);
        }
    }

    private void apply(int peer, MpiMessage message) {
        if (message.kind() == MpiMessage.LEFT) {
            health.peerLeft(peer);
            return;
        }
        MpiRegion region = regions.get(message.key());
        MemoryRegion memory = region.memory;
        int own = region.group.memberOf(self);
        switch (message.kind()) {
            case MpiMessage.RELEASED -> regions.release(region, peer);
            case MpiMessage.WORD ->
                    world.store(memory, own, message.get(Field.AT), message.number(Field.VALUE));
            case MpiMessage.PUBLISHED ->
                    world.store(
                            memory,
                            region.group.memberOf(peer),
                            message.get(Field.AT),
                            message.number(Field.VALUE));
            case MpiMessage.VALUE ->
                    Words.longRelease(
                            memory.words(region.group.memberOf(peer)),
                            message.get(Field.AT),
                            message.get(Field.WIDE));
            default -> {
                world.store(memory, own, message.get(Field.FLAG_AT), message.number(Field.VALUE));
                if (message.get(Field.COUNTER_AT) >= 0) {
                    world.store(
                            memory,
                            own,
                            message.get(Field.COUNTER_AT),
                            message.number(Field.COUNTER));
                }
                MpiChunkMover mover = movers.get(message.number(Field.MOVER));
                if (mover != null) {
                    mover.ended(message.number(Field.INDEX), peer);
                }
                health.worked();
            }
        }
    }
}
