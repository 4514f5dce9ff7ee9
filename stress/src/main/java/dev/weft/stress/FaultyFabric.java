package dev.weft.stress;

import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.IntConsumer;

/** A rank's fabric in which its case's fault happens; otherwise the one below. */
final class FaultyFabric {

    private final Transport below;
    private final Injector injector;

    private FaultyFabric(Transport below, Injector injector) {
        this.below = below;
        this.injector = injector;
    }

    static Transport of(Transport below, Injector injector) {
        FaultyFabric faulty = new FaultyFabric(below, injector);
        return (Transport)
                Proxy.newProxyInstance(
                        FaultyFabric.class.getClassLoader(),
                        new Class<?>[] {Transport.class},
                        (proxy, method, arguments) -> faulty.call(method, arguments));
    }

    private Object call(Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "allocate" -> injector.at(Fault.Phase.ALLOCATION);
            case "signal", "barrier", "exchange" -> injector.dawdle();
            case "mover" -> {
                IntConsumer ended = (IntConsumer) arguments[0];
                return new FaultyChunkMover(below, below.mover(ended), injector);
            }
            case "split" -> {
                return of(below.split((ReplicaGroups) arguments[0]), injector);
            }
            case "publish" -> {
                publish((Region) arguments[0], (long) arguments[1], (int) arguments[2]);
                return null;
            }
            default -> {}
        }
        try {
            return method.invoke(below, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private void publish(Region region, long offset, int value) {
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
        if (injector.now(Fault.Type.STALL, phase)) {
            injector.hang();
        }
        if (injector.now(Fault.Type.CORRUPT, phase)) {
            below.publish(region, 0, injector.nonsense(value));
            Injector.sleepMicros(FaultyChunkMover.SEEN_MICROS);
        }
        if (injector.now(Fault.Type.DROP, phase)) {
            return;
        }
        below.publish(region, 0, value);
        if (injector.now(Fault.Type.DUPLICATE, phase)) {
            below.publish(region, 0, value);
        }
    }
}
