/**
 * Predicts how long calls would take on other machines, to plan a cluster or to choose an
 * algorithm.
 *
 * {@snippet :
 * static double microseconds(Algorithm algorithm) {
 *     MachineModel machine = MachineModel.of("h200-nvlink8");
 *     Chunks chunks = machine.chunks(Shards.even(16384, 8), 8192, 7);
 *     PredictedCall call = machine.predict(algorithm, chunks, 7, DType.BF16, 4096);
 *     return call.ns() / 1000;
 * }
 * }
 *
 * <p>Invariant: no threads, no clock, no randomness. The same call on the same model takes the same
 * time to the last bit, and never less than its bound.
 */
package dev.weft.predict;
