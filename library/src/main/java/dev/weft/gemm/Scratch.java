package dev.weft.gemm;

/**
 * Working memory of one thread for one engine, made by {@link Gemm#scratch}. Opaque to callers,
 * holds no result between calls. Not for two threads at a time.
 */
public sealed interface Scratch permits OpenBlasScratch, ScalarScratch, TiledBlock {

    /** The scratch as the engine's own; refuses another engine's. */
    static <S extends Scratch> S of(Class<S> own, Scratch scratch, String engine) {
        if (!own.isInstance(scratch)) {
            throw new IllegalArgumentException(
                    "scratch of another engine: ask engine %s for scratch".formatted(engine));
        }
        return own.cast(scratch);
    }
}
