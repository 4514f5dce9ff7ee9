/**
 * Finds which plan to run. A {@link dev.weft.search.PlanSearch} prices every algorithm and cut that
 * qualifies for a {@link dev.weft.search.Problem} on a {@link dev.weft.sim.Machine}. The same
 * search serves {@link dev.weft.plan.Algorithm#AUTO}, which then tries the cheapest, {@code weft
 * plan} and simulated runs. A cluster can be planned before it is bought:
 *
 * {@snippet :
 * Machine cluster = Machines.of("h200-nvlink8");
 * Problem problem =
 *         Problem.of(Shards.even(16_384, 16), 8192, 4096, DType.BF16, DType.FP32);
 * PlanSearch search = new PlanSearch(cluster, problem);
 * Candidate best = search.candidates(PlanSearch.Budget.THOROUGH).getFirst();
 * System.out.printf(
 *         "%s in chunks of %d rows: %.3f ms%n",
 *         best.algorithm().label(), search.chunkRows(best), best.predictedNs() / 1e6);
 * }
 *
 * <p>Invariant: pure, except for {@link dev.weft.search.AutoChoice}, which asks its caller to try
 * candidates.
 */
package dev.weft.search;
