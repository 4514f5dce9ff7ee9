package dev.weft.stress;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.SplittableRandom;

/**
 * What one rank does in a case: pair after pair of operators on one group, called in turn and at
 * once, without a barrier anywhere, so that a fast rank may be a whole call ahead.
 */
final class Workload {

    /**
     * What was done and found right.
     *
     * @param sums the calls in which products were summed over ranks
     */
    record Tally(long calls, long sums, long bytes) {

        static final Tally NOTHING = new Tally(0, 0, 0);

        Tally plus(Tally other) {
            return new Tally(calls + other.calls, sums + other.sums, bytes + other.bytes);
        }
    }

    private final Case run;
    private final Injector injector;
    private long calls;
    private long sums;
    private long bytes;

    Workload(Case run, Injector injector) {
        this.run = run;
        this.injector = injector;
    }

    Tally on(Fabric world) {
        Fabric fabric = FaultyFabric.of(Transport.of(world), injector);
        for (int pair = 0; calls < run.calls(); pair++) {
            pairOfOperators(fabric, new SplittableRandom(run.seed() * 1_000_003 + pair));
        }
        return new Tally(calls, sums, bytes);
    }

    private void pairOfOperators(Fabric fabric, SplittableRandom random) {
        RandomProblem first = problem(fabric, random);
        RandomProblem second = problem(fabric, random);
        // The fabric's own gather has the process to itself.
        boolean atOnce = !run.launcher().isMpi() || !first.isFabricsOwn() && !second.isFabricsOwn();
        boolean harmless = run.fault().type().isHarmless();
        try (Arena arena = Arena.ofShared();
                CheckedOperator one = new CheckedOperator(fabric, first, arena);
                CheckedOperator other = new CheckedOperator(fabric, second, arena)) {
            for (int i = 0; i < Case.CALLS_PER_PAIR && calls < run.calls(); i += 2) {
                if (i == 2 * run.faultCall()) {
                    injector.at(Fault.Phase.BETWEEN_CALLS);
                }
                injector.dawdle();
                if (harmless && random.nextInt(12) == 0) {
                    one.unchecked(View.COMM_ONLY);
                    one.unchecked(View.COMPUTE_ONLY);
                }
                boolean inPlace = random.nextBoolean();
                one.start(inPlace);
                if (atOnce && random.nextBoolean()) {
                    other.start(!inPlace);
                    bytes += one.finish();
                } else {
                    bytes += one.finish();
                    other.start(!inPlace);
                }
                bytes += other.finish();
                calls += 2;
                sums += first.isSum() ? 1 : 0;
                sums += second.isSum() ? 1 : 0;
            }
        }
    }

    private RandomProblem problem(Fabric fabric, SplittableRandom random) {
        Operation[] all = Operation.values();
        Operation any = all[random.nextInt(all.length)];
        Operation operation = run.operation() == null ? any : run.operation();
        List<String> algorithms = operation.algorithms(fabric.sharesMemory());
        String one = algorithms.get(random.nextInt(algorithms.size()));
        String algorithm = run.algorithm() == null ? one : run.algorithm();
        // A fault needs a chunk to happen to, in the call of its number.
        int least = run.fault().type().isHarmless() ? 0 : 1;
        return RandomProblem.of(operation, algorithm, fabric.size(), least, random);
    }
}
