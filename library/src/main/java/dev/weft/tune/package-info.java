/**
 * Measures the machine that Weft runs on, as a {@link dev.weft.sim.Machine} on which the simulator
 * can price plans.
 *
 * <p>Invariant: it only measures, and writes no file. What a measurement is used for is decided
 * elsewhere.
 */
package dev.weft.tune;
