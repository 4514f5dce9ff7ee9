/**
 * A plan in steps: what every worker of every rank copies, multiplies and adds, after what. The
 * records know no collective. {@link dev.weft.plan.step.Placement} says which elements of A and B
 * each rank has and which rows of C it is to get; {@link dev.weft.plan.step.StepPlanBuilder} writes
 * steps and works out what each has to wait for; {@link dev.weft.plan.step.StepChecker} proves that
 * the steps of all ranks together compute what the placement asks for, and in which order they sum.
 *
 * {@snippet :
 * static String order() {
 *     Range rows = new Range(0, 3);
 *     Range front = new Range(0, 4); // columns of A, and rows of B, of rank 0
 *     Range back = new Range(4, 5);
 *     OfRank first = new OfRank(rows, front, front, rows);
 *     OfRank second = new OfRank(rows, back, back, new Range(0, 0)); // gets nothing of C
 *     Placement placement = new Placement(3, 9, 2, List.of(first, second));
 *     StepPlanBuilder plan = new StepPlanBuilder(placement);
 *     Part own = plan.buffer(0, "own", Buffer.Kind.SUMS, 3, 2);
 *     Part others = plan.buffer(1, "others", Buffer.Kind.SUMS, 3, 2);
 *     Part arrived = plan.buffer(0, "arrived", Buffer.Kind.SUMS, 3, 2);
 *     plan.multiply(0, 0, plan.a(0), plan.b(0), own, false);
 *     plan.multiply(1, 0, plan.a(1), plan.b(1), others, false);
 *     plan.copy(1, 0, others, arrived);
 *     plan.add(0, 0, List.of(own, arrived), plan.c(0));
 *     Set<SumOrder> orders = StepChecker.check(plan.build(), placement, (rank, other) -> false);
 *     return orders.iterator().next().text(); // (k 0..4) + (k 4..9)
 * }
 * }
 *
 * <p>Invariant: no threads, no I/O, no clock. Nothing here depends on a way to gather or to reduce.
 */
package dev.weft.plan.step;
