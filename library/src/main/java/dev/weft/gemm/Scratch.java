package dev.weft.gemm;

/**
 * Working memory of one thread for one engine, created by {@link Gemm#scratch}. It is opaque to
 * callers and holds no result between calls. Not thread-safe.
 */
public sealed interface Scratch
        permits BlockGemm.Room, OpenBlasGemm.Converted, IdentityGemm.Row, TiledBlock {

    /** The scratch as the engine's own type; refuses another engine's. */
    static <S extends Scratch> S of(Class<S> own, Scratch scratch, String engine) {
        if (!own.isInstance(scratch)) {
            throw new IllegalArgumentException(
                    "scratch of another engine: ask engine %s for scratch".formatted(engine));
        }
        return own.cast(scratch);
    }
}
