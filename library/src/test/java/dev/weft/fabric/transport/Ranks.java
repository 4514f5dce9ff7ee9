package dev.weft.fabric.transport;

import dev.weft.fabric.World;
import java.time.Duration;
import java.util.List;

/** A world of threads for one test. */
public final class Ranks {

    /** The code of a rank. */
    public interface Body {
        void run(Transport fabric) throws Exception;
    }

    /** The code of a rank, with a result. */
    public interface Function<T> {
        T apply(Transport fabric) throws Exception;
    }

    private Ranks() {}

    public static void run(int ranks, Body body) {
        run(ranks, World.DEFAULT_DEADLINE, body);
    }

    public static void run(int ranks, Duration deadline, Body body) {
        try (World world = World.threads(ranks, deadline)) {
            world.run(fabric -> body.run(Transport.of(fabric)));
        }
    }

    /** What each rank's code gave. */
    public static <T> List<T> call(int ranks, Function<T> function) {
        try (World world = World.threads(ranks)) {
            return world.call(fabric -> function.apply(Transport.of(fabric)));
        }
    }
}
