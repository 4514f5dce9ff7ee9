/**
 * A plan in steps: what every worker of every rank copies, multiplies and adds, after what. The
 * records know no collective. {@link dev.weft.plan.step.Placement} says which elements of A and B
 * each rank has and which rows of C it is to get; {@link dev.weft.plan.step.StepPlanBuilder} writes
 * steps and works out what each has to wait for; {@link dev.weft.plan.step.StepChecker} proves that
 * the steps of all ranks together compute what the placement asks for, and in which order they sum.
 *
 * <p>Invariant: no threads, no I/O, no clock. Nothing here depends on a way to gather or to reduce.
 */
package dev.weft.plan.step;
