package dev.weft.fuzz;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.LongPredicate;

/**
 * Feeds one target. An input whose trail is new joins the corpus, so the next ones start from
 * further inside the reader: what instrumented code would tell of branches, the line where it
 * refused tells well enough. The same seed gives the same inputs. Reading happens on a thread of
 * its own, which is left behind if it does not answer.
 */
final class Fuzzer {

    /** No reader takes a hundredth of this for the largest input. */
    private static final long HUNG_NS = 20_000_000_000L;

    private static final int MAX_CORPUS = 400;
    private static final int LOOK_MS = 20;

    /** An input that is a finding. */
    record Finding(String target, String problem, byte[] input) {}

    /** What one target did with its inputs. */
    record Result(
            String target, long inputs, long accepted, double seconds, List<Finding> findings) {

        Result {
            findings = List.copyOf(findings);
        }

        long refused() {
            return inputs - accepted;
        }
    }

    private final Target target;
    private final LongPredicate more;
    private final Mutations mutations;
    private final List<byte[]> corpus;
    private final Set<String> trails = new HashSet<>();

    /** By problem and trail: one input is as good as a thousand of its kind. */
    private final Map<String, Finding> findings = new LinkedHashMap<>();

    private volatile byte[] current;
    private volatile long currentSinceNs;
    private volatile Throwable broken;
    private long inputs;
    private long accepted;

    /**
     * @param more whether to go on after so many inputs
     */
    private Fuzzer(Target target, long seed, LongPredicate more) {
        this.target = target;
        this.more = more;
        this.mutations = new Mutations(new SplittableRandom(seed ^ target.name().hashCode()));
        this.corpus = new ArrayList<>(target.seeds());
    }

    static Result run(Target target, long seed, LongPredicate more) throws InterruptedException {
        return new Fuzzer(target, seed, more).run();
    }

    private Result run() throws InterruptedException {
        long beganNs = System.nanoTime();
        currentSinceNs = beganNs;
        Thread reader =
                Thread.ofPlatform()
                        .name("fuzz " + target.name())
                        .daemon()
                        .uncaughtExceptionHandler((thread, e) -> broken = e)
                        .start(this::feed);
        while (!reader.join(Duration.ofMillis(LOOK_MS))) {
            if (System.nanoTime() - currentSinceNs > HUNG_NS) {
                return hung(reader, beganNs);
            }
        }
        if (broken != null) {
            throw new IllegalStateException(target.name() + ": " + broken.getMessage(), broken);
        }
        return result(beganNs, List.copyOf(findings.values()));
    }

    /** What the reader has counted so far is not read: it may still run. */
    private Result hung(Thread reader, long beganNs) {
        StackTraceElement[] stack = reader.getStackTrace();
        String where = stack.length == 0 ? "nowhere" : stack[0].toString();
        String problem = "no answer after " + HUNG_NS / 1_000_000_000 + " s, at " + where;
        return result(beganNs, List.of(new Finding(target.name(), problem, current)));
    }

    private Result result(long beganNs, List<Finding> found) {
        double seconds = (System.nanoTime() - beganNs) * 1e-9;
        return new Result(target.name(), inputs, accepted, seconds, found);
    }

    private void feed() {
        for (byte[] seed : target.seeds()) {
            // Twice: the first time loads classes, which is not the input's fault.
            for (boolean watchesMemory : new boolean[] {false, true}) {
                Verdict verdict = judge(seed, new Oracle(watchesMemory));
                if (!verdict.accepted() || verdict.isFinding()) {
                    throw new IllegalStateException(
                            "a seed is not accepted: " + verdict.problem() + " " + verdict.trail());
                }
            }
        }
        Oracle oracle = new Oracle(true);
        for (inputs = 0; more.test(inputs); inputs++) {
            // Every other one from a whole input: what is damaged once is rarely healed by more.
            byte[] input = mutations.next(inputs % 2 == 0 ? target.seeds() : corpus);
            Verdict verdict = judge(input, oracle);
            if (verdict.isFinding()) {
                verdict = judge(input, oracle);
            }
            accepted += verdict.accepted() ? 1 : 0;
            if (verdict.isFinding()) {
                findings.putIfAbsent(
                        verdict.trail(), new Finding(target.name(), verdict.problem(), input));
            }
            if (trails.add(verdict.trail()) && corpus.size() < MAX_CORPUS) {
                corpus.add(input);
            }
        }
    }

    private Verdict judge(byte[] input, Oracle oracle) {
        current = input;
        currentSinceNs = System.nanoTime();
        return oracle.judge(target, input);
    }
}
