/**
 * The same plans on machines that nobody has at hand. A {@link Machine} is a model that a file
 * describes; {@link Simulator} prices on it what every {@link dev.weft.plan.RankPlan} of a {@link
 * Scenario} does, by discrete events.
 *
 * <p>Invariant: no threads, no clock, no chance. The same scenario on the same machine takes the
 * same time to the last bit, and never less than its {@link Bounds}.
 */
package dev.weft.sim;
