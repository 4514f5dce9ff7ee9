package dev.weft.gemm;

/**
 * Working memory of one thread for one engine, made by {@link Gemm#scratch}. Opaque to callers,
 * holds no result between calls. Not for two threads at a time.
 */
public sealed interface Scratch permits OpenBlasScratch, ScalarScratch, VectorScratch {}
