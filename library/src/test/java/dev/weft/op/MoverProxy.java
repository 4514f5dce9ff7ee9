package dev.weft.op;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Transport;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;

/** A mover that gives its moves to a test, which passes them on in its own way. */
record MoverProxy(int lane, ChunkMover mover, Moves moves) implements ChunkMover {

    /** Told of a lane's move; makes it, most often by {@code mover}. */
    interface Moves {
        void move(int lane, ChunkMover mover, int index, Move move, int flag, int counter);
    }

    /** A transport whose movers, one per lane, are such. */
    static Transport of(Transport below, Moves moves) {
        AtomicInteger lanes = new AtomicInteger();
        Object proxy =
                Proxy.newProxyInstance(
                        Transport.class.getClassLoader(),
                        new Class<?>[] {Transport.class},
                        (self, method, arguments) -> {
                            if (method.getName().equals("mover")) {
                                ChunkMover mover = below.mover((IntConsumer) arguments[0]);
                                return new MoverProxy(lanes.getAndIncrement(), mover, moves);
                            }
                            try {
                                return method.invoke(below, arguments);
                            } catch (InvocationTargetException e) {
                                throw e.getCause();
                            }
                        });
        return (Transport) proxy;
    }

    @Override
    public void move(int index, Move move, int flag, int counter) {
        moves.move(lane, mover, index, move, flag, counter);
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
