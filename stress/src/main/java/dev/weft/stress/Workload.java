package dev.weft.stress;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import java.lang.foreign.Arena;
import java.util.SplittableRandom;

/**
 * What one rank does in a case: pair after pair of operators on one group, called in turn and at
 * once, without a barrier anywhere, so that a fast rank may be a whole call ahead.
 */
final class Workload {

    /** What was done and found right. */
    record Tally(long calls, long bytes) {

        Tally plus(Tally other) {
            return new Tally(calls + other.calls, bytes + other.bytes);
        }
    }

    private final Case run;
    private final Injector injector;
    private long calls;
    private long bytes;

    Workload(Case run, Injector injector) {
        this.run = run;
        this.injector = injector;
    }

    Tally on(Fabric world) {
        Fabric fabric = new FaultyFabric(Transport.of(world), injector);
        for (int pair = 0; calls < run.calls(); pair++) {
            pairOfOperators(fabric, new SplittableRandom(run.seed() * 1_000_003 + pair));
        }
        return new Tally(calls, bytes);
    }

    private void pairOfOperators(Fabric fabric, SplittableRandom random) {
        Algorithm first = algorithm(fabric, random);
        Algorithm second = algorithm(fabric, random);
        // The fabric's own gather has the process to itself.
        boolean atOnce =
                !run.launcher().isMpi()
                        || first != Algorithm.SEQUENTIAL && second != Algorithm.SEQUENTIAL;
        // A fault needs a chunk to happen to, in the call of its number.
        boolean harmless = run.fault().kind().isHarmless();
        int rows = harmless ? 0 : 1;
        try (Arena arena = Arena.ofShared();
                CheckedOperator one = new CheckedOperator(fabric, first, rows, random, arena);
                CheckedOperator other = new CheckedOperator(fabric, second, rows, random, arena)) {
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
            }
        }
    }

    private Algorithm algorithm(Fabric fabric, SplittableRandom random) {
        Algorithm[] all = Algorithm.values();
        Algorithm any = all[1 + random.nextInt(all.length - 1)];
        Algorithm chosen = run.algorithm() == null ? any : run.algorithm();
        return chosen == Algorithm.DIRECT && !fabric.sharesMemory() ? Algorithm.MESH_PULL : chosen;
    }
}
