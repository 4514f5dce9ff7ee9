package dev.weft.cuda;

import dev.weft.fabric.Courier;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.Move;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.function.IntConsumer;

/** Couriers of one rank that move chunks up to some call, and fail in it. */
final class BrokenCourier implements Courier {

    static final String MESSAGE = "the link broke";

    private final Courier courier;
    private final int call;

    private BrokenCourier(Courier courier, int call) {
        this.courier = courier;
        this.call = call;
    }

    /** The same fabric, whose couriers fail in call {@code call}. */
    static Fabric in(Fabric fabric, int call) {
        return (Fabric)
                Proxy.newProxyInstance(
                        Fabric.class.getClassLoader(),
                        new Class<?>[] {Fabric.class},
                        (proxy, method, arguments) -> {
                            if (method.getName().equals("courier")) {
                                return new BrokenCourier(
                                        fabric.courier((IntConsumer) arguments[0]), call);
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
        courier.move(index, move, flag, counter);
    }

    @Override
    public void awaitAll() {
        courier.awaitAll();
    }

    @Override
    public void close() {
        courier.close();
    }
}
