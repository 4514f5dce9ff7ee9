package dev.weft.model;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Hosts;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntConsumer;

/** Writes down, thread by thread, which words of which region a rank awaits and raises. */
final class RecordingFabric {

    /**
     * @param isWait otherwise the word is raised
     * @param lead how far past {@code value} a waiter takes the word for a signal; -1 if raised
     */
    record Event(Region region, boolean isWait, int home, long offset, int value, int lead) {}

    private final Transport below;
    private final Hosts hosts;
    private final Map<String, List<Event>> events = new ConcurrentHashMap<>();

    /**
     * @param hosts on which the operator believes its ranks to be
     */
    RecordingFabric(Transport below, Hosts hosts) {
        this.below = below;
        this.hosts = hosts;
    }

    /** The same fabric, of which is recorded what matters. */
    Transport fabric() {
        return (Transport)
                Proxy.newProxyInstance(
                        Transport.class.getClassLoader(),
                        new Class<?>[] {Transport.class},
                        (proxy, method, arguments) -> call(method, arguments));
    }

    /** By the name of the thread. */
    Map<String, List<Event>> events() {
        return events;
    }

    private Object call(Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "await", "reached" ->
                    add(
                            (Region) arguments[0],
                            true,
                            (int) arguments[1],
                            (long) arguments[2],
                            (int) arguments[3],
                            lead(arguments));
            case "publish" ->
                    add(
                            (Region) arguments[0],
                            false,
                            below.rank(),
                            (long) arguments[1],
                            (int) arguments[2],
                            -1);
            case "signal" ->
                    add(
                            (Region) arguments[0],
                            false,
                            (int) arguments[1],
                            (long) arguments[2],
                            (int) arguments[3],
                            -1);
            case "hosts" -> {
                return hosts;
            }
            case "mover" -> {
                return new RecordingChunkMover(below.mover((IntConsumer) arguments[0]));
            }
            default -> {}
        }
        try {
            return method.invoke(below, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    /** Who says nothing of what it awaits takes anything for a signal. */
    private static int lead(Object[] arguments) {
        return arguments.length > 4 ? ((Awaited) arguments[4]).lead() : Awaited.ANY_LEAD;
    }

    /** Who looks at a word and then waits for it has one wait. */
    private void add(Region region, boolean isWait, int home, long offset, int value, int lead) {
        List<Event> ofThread =
                events.computeIfAbsent(Thread.currentThread().getName(), n -> new ArrayList<>());
        Event event = new Event(region, isWait, home, offset, value, lead);
        if (!isWait || ofThread.isEmpty() || !ofThread.getLast().equals(event)) {
            ofThread.add(event);
        }
    }

    private final class RecordingChunkMover implements ChunkMover {

        private final ChunkMover mover;

        RecordingChunkMover(ChunkMover mover) {
            this.mover = mover;
        }

        @Override
        public void move(int index, Move move, int flag, int counter) {
            add(move.region(), false, move.to(), move.flagAt(), flag, -1);
            if (move.counterAt() >= 0) {
                add(move.region(), false, move.to(), move.counterAt(), counter, -1);
            }
            mover.move(index, move, flag, counter);
        }

        @Override
        public void awaitAll() {
            mover.awaitAll();
        }

        @Override
        public void close() {
            mover.close();
        }
    }
}
