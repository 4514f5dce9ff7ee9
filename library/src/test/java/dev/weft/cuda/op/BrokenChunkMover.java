package dev.weft.cuda.op;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Transport;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.function.IntConsumer;

/** Chunk movers of one rank that move chunks up to some call, and fail in it. */
final class BrokenChunkMover implements ChunkMover {

    static final String MESSAGE = "the link broke";

    private final ChunkMover mover;
    private final int call;

    private BrokenChunkMover(ChunkMover mover, int call) {
        this.mover = mover;
        this.call = call;
    }

    /** The same fabric, whose chunk movers fail in call {@code call}. */
    static Transport in(Transport fabric, int call) {
        return (Transport)
                Proxy.newProxyInstance(
                        Transport.class.getClassLoader(),
                        new Class<?>[] {Transport.class},
                        (proxy, method, arguments) -> {
                            if (method.getName().equals("mover")) {
                                return new BrokenChunkMover(
                                        fabric.mover((IntConsumer) arguments[0]), call);
                            }
                            try {
                                return method.invoke(fabric, arguments);
                            } catch (InvocationTargetException e) {
                                throw e.getCause();
                            }
                        });
    }

    @Override
    public void move(int index, Move move, int flag, int counter) {
        if (flag == call) {
            throw new IllegalStateException(MESSAGE);
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
