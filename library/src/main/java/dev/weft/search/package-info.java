/**
 * Which plan to run. A {@link dev.weft.search.PlanSearch} prices every algorithm and cut that comes
 * into question for a {@link dev.weft.search.Problem} on a {@link dev.weft.sim.Machine}: the same
 * search for {@link dev.weft.plan.Algorithm#AUTO}, which then tries the cheapest, for {@code weft
 * plan} and for simulated runs. A cluster can be planned before it is bought:
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
 * <p>Invariant: pure, but for {@link dev.weft.search.AutoChoice}, which has candidates tried by
 * whoever asks.
 */
package dev.weft.search;
