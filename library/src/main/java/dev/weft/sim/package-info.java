/**
 * Runs the same plans on models of machines. A {@link Machine} is a model that a file describes;
 * {@link Simulator} prices what every {@link dev.weft.plan.step.StepPlan} of a {@link Scenario}
 * does on it, by discrete events.
 *
 * <p>Invariant: no threads, no clock, no randomness. The same scenario on the same machine takes
 * the same time to the last bit, and never less than its {@link Bounds}.
 */
package dev.weft.sim;
