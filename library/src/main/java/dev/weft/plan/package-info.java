/**
 * The plan is data: who sends which chunk to whom, in which order, and in which order rows are
 * consumed, as plain records written by pure code. Executors run plans, simulators price them,
 * reports draw them, {@link dev.weft.plan.PlanChecker} proves them. Invariant: no threads, no I/O,
 * no clock; the same arguments give the same plan on every rank and every machine.
 *
 * <p>Ranks in this room are numbered within one group, 0 to R-1.
 */
package dev.weft.plan;
