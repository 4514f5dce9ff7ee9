/**
 * The plan is data: who sends which chunk to whom, in which order, and in which order rows are
 * consumed, as plain records written by pure code. Executors run plans, simulators price them,
 * reports draw them, {@link dev.weft.plan.step.StepChecker} proves them. An algorithm is a {@link
 * dev.weft.plan.GatherWriter} or a {@link dev.weft.plan.ReductionWriter}: one of {@link
 * dev.weft.plan.Algorithm} or {@link dev.weft.plan.Reduction}, or your own.
 *
 * {@snippet :
 * static List<String> ring() {
 *     Chunks chunks = Chunks.bySplits(Shards.of(100, 0, 80), 64, 2, 50);
 *     GatherRequest request = new GatherRequest(chunks, 1, Hosts.one(3), 32);
 *     List<StepPlan> plans = Algorithm.RING.plans(request);
 *     StepChecker.check(plans, request.placement(), request.hosts()::shareMemory);
 *     return StepPlan.describe(plans);
 * }
 * }
 *
 * <p>Invariant: no threads, no I/O, no clock; the same arguments give the same plan on every rank
 * and every machine. Ranks in this package are numbered within one group, 0 to R-1.
 */
package dev.weft.plan;
