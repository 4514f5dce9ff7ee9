package dev.weft.bench.cpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Operator.Candidate;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * {@code auto} beside every algorithm that the hosts allow, in turns, on one of the {@link
 * RandomProblem}s. All must give the same bits. Collective; used by one thread of each rank.
 */
final class AutoRace implements AutoCloseable {

    private final Fabric fabric;
    private final RandomProblem problem;
    private final RankOperators own;
    private final Map<String, AllGatherMatmul> operators = new LinkedHashMap<>();

    private AutoRace(Fabric fabric, RandomProblem problem) {
        this.fabric = fabric;
        this.problem = problem;
        this.own =
                new RankOperators(
                        fabric,
                        problem.shards(),
                        problem.inner(),
                        problem.columns(),
                        problem.dtype());
    }

    static Interleaved.Effort effort(boolean quick) {
        return quick
                ? new Interleaved.Effort(50_000_000L, 300_000_000L, 0, 3, 3)
                : new Interleaved.Effort(300_000_000L, 1_000_000_000L, 3_000_000_000L, 7, 1001);
    }

    /** The same on every rank. */
    static AutoTimes run(Fabric fabric, RandomProblem problem, Interleaved.Effort effort)
            throws IOException, InterruptedException {
        try (AutoRace race = new AutoRace(fabric, problem)) {
            race.prepare();
            AutoTimes times = race.measure(effort);
            race.check();
            return times;
        }
    }

    /** Auto first: as for a user, nothing of the problem has run before it chooses. */
    private void prepare() {
        add(Algorithm.AUTO.label(), Algorithm.AUTO);
        for (Algorithm algorithm : Algorithm.values()) {
            boolean runs = algorithm != Algorithm.DIRECT || fabric.sharesMemory();
            if (runs && algorithm != Algorithm.AUTO) {
                add(algorithm.label(), algorithm);
            }
        }
        add(AutoTimes.SEQUENTIAL_AGAIN, Algorithm.SEQUENTIAL);
    }

    private void add(String name, Algorithm algorithm) {
        operators.put(name, own.prepare(algorithm, problem.keepGathered()));
    }

    private AutoTimes measure(Interleaved.Effort effort) throws IOException, InterruptedException {
        List<String> names = List.copyOf(operators.keySet());
        Interleaved.Outcome outcome =
                own.measure(
                        effort,
                        operators.values().stream()
                                .map(each -> new RankOperators.Side(each, View.PIPELINED))
                                .toList());
        Map<String, AutoTimes.Side> sides = new LinkedHashMap<>();
        for (int i = 0; i < names.size(); i++) {
            sides.put(names.get(i), new AutoTimes.Side(outcome.medianNs(i), outcome.spreadNs(i)));
        }
        return new AutoTimes(problem.index(), chosen(), outcome.rounds(), sides);
    }

    private String chosen() {
        Candidate chosen =
                operators.get(Algorithm.AUTO.label()).candidates().stream()
                        .filter(Candidate::chosen)
                        .findFirst()
                        .orElseThrow();
        return chosen.algorithm().label() + "/" + chosen.chunksPerSource();
    }

    private void check() {
        AllGatherMatmul auto = operators.get(Algorithm.AUTO.label());
        operators.forEach(
                (name, operator) -> {
                    Matrix product = operator.lastResult().product();
                    if (!product.bitwiseEquals(auto.lastResult().product())) {
                        throw different(name, "product");
                    }
                    Optional<Matrix> gathered = operator.lastResult().gathered();
                    if (problem.keepGathered()
                            && !gathered.orElseThrow()
                                    .bitwiseEquals(auto.lastResult().gathered().orElseThrow())) {
                        throw different(name, "gathered A");
                    }
                });
    }

    private IllegalStateException different(String name, String what) {
        return new IllegalStateException(
                "%s: rank %d has another %s with %s than with auto"
                        .formatted(problem.describe(), fabric.rank(), what, name));
    }

    @Override
    public void close() {
        own.close();
    }
}
