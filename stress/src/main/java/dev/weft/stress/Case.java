package dev.weft.stress;

import dev.weft.plan.Algorithm;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Collectors;

/**
 * All there is to say about one run: its problems follow from the seed. Written as words such as
 * {@code launcher=processes ranks=4 op=matmul-allreduce algorithm=chain fault=kill phase=close
 * rank=1 ...}, and read back from them.
 *
 * @param launcher how the ranks come about
 * @param operation what every operator does, or null: each does another thing
 * @param algorithm of every operator, or null: each has another one
 * @param calls all operators' calls together, per rank
 * @param everyRank whether delays happen to all ranks, not only to the fault's
 * @param delayMicros the longest delay
 */
record Case(
        Launcher launcher,
        int ranks,
        Operation operation,
        String algorithm,
        int calls,
        Fault fault,
        long deadlineMs,
        long seed,
        boolean everyRank,
        long delayMicros) {

    /** Calls of one pair of operators, before others take their place. */
    static final int CALLS_PER_PAIR = 24;

    /** The call of an operator in which a fault happens: both of its slots have been used. */
    private static final int FAULT_CALL = 3;

    /** In words, that each operator of the case is another one. */
    private static final String ANY = "any";

    /** How ranks come about. */
    enum Launcher {
        THREADS,
        PROCESSES,
        /** By mpirun, sharing memory. */
        MPI,
        /** By mpirun, two ranks to a host as far as Weft can tell. */
        HOSTS;

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }

        boolean isMpi() {
            return this == MPI || this == HOSTS;
        }
    }

    Case {
        if (algorithm != null) {
            operation.check(algorithm);
        }
        if (fault.rank() >= ranks) {
            throw new IllegalArgumentException(
                    "rank=" + fault.rank() + " of ranks=" + ranks + ": expected one of them");
        }
        if (!fault.type().phases().contains(fault.phase())) {
            throw new IllegalArgumentException(
                    "fault="
                            + fault.type().label()
                            + " with phase="
                            + fault.phase().label()
                            + ": expected one of "
                            + fault.type().phases().stream()
                                    .map(Fault.Phase::label)
                                    .collect(Collectors.joining(", ")));
        }
    }

    /** Runs it on whatever it names. */
    Ending execute() {
        return switch (launcher) {
            case THREADS -> ThreadRanks.run(this);
            case PROCESSES -> ProcessRanks.run(this);
            case MPI, HOSTS -> MpirunRanks.run(this);
        };
    }

    /** From the fault to the last error: the deadline and a second. */
    long promisedMs() {
        return deadlineMs + 1_000;
    }

    /**
     * How long its ranks may take before they count as hung: Java starts slowly on a busy machine.
     */
    long timeoutMs() {
        return 60_000 + 2 * deadlineMs + 500L * ranks + 60L * calls;
    }

    int faultCall() {
        return FAULT_CALL;
    }

    /** Whether operators have no lanes, so that a start word stands for the chunks it announces. */
    boolean startsAreChunks() {
        boolean direct = Algorithm.DIRECT.label().equals(algorithm);
        return switch (operation) {
            case null -> false;
            case GATHER ->
                    direct || Algorithm.SEQUENTIAL.label().equals(algorithm) && launcher.isMpi();
            case SCATTER -> direct;
            case ALL -> false;
        };
    }

    /** Any problem with any fault that can happen to it. */
    static Case random(long seed, Launcher launcher, long deadlineMs) {
        SplittableRandom random = new SplittableRandom(seed);
        int ranks = 2 + random.nextInt(launcher == Launcher.THREADS ? 7 : 3);
        Fault.Type[] kinds = Fault.Type.values();
        // Half of all runs are to go well.
        Fault.Type kind =
                random.nextBoolean()
                        ? random.nextBoolean() ? Fault.Type.NONE : Fault.Type.DELAY
                        : kinds[random.nextInt(kinds.length)];
        if (kind == Fault.Type.REORDER && launcher == Launcher.HOSTS) {
            kind = Fault.Type.DELAY;
        }
        Fault.Phase phase = kind.phases().get(random.nextInt(kind.phases().size()));
        if (phase == Fault.Phase.RENDEZVOUS && launcher == Launcher.THREADS) {
            phase = Fault.Phase.ALLOCATION;
        }
        Operation operation = Operation.values()[random.nextInt(Operation.values().length)];
        List<String> algorithms = operation.algorithms(launcher != Launcher.HOSTS);
        String algorithm =
                kind == Fault.Type.REORDER
                        ? Algorithm.MESH_PUSH.label()
                        : algorithms.get(random.nextInt(algorithms.size()));
        boolean mixed = kind.isHarmless() && kind != Fault.Type.REORDER;
        return new Case(
                launcher,
                ranks,
                mixed ? null : operation,
                mixed ? null : algorithm,
                CALLS_PER_PAIR * (kind.isHarmless() ? 1 + random.nextInt(4) : 1),
                new Fault(kind, phase, random.nextInt(ranks)),
                deadlineMs,
                seed,
                random.nextBoolean(),
                1 + random.nextLong(2_000));
    }

    String words() {
        Map<String, Object> words = new LinkedHashMap<>();
        words.put("launcher", launcher.label());
        words.put("ranks", ranks);
        words.put("op", operation == null ? ANY : operation.label());
        words.put("algorithm", algorithm == null ? ANY : algorithm);
        words.put("calls", calls);
        words.put("fault", fault.type().label());
        words.put("phase", fault.phase().label());
        words.put("rank", fault.rank());
        words.put("deadline", deadlineMs);
        words.put("seed", seed);
        words.put("every", everyRank);
        words.put("delay", delayMicros);
        StringBuilder text = new StringBuilder();
        words.forEach((key, value) -> text.append(key).append('=').append(value).append(' '));
        return text.toString().strip();
    }

    /** The case that {@link #words} tells; words left out have the values of a small case. */
    static Case parse(String text) {
        Map<String, String> words = new LinkedHashMap<>();
        for (String word : text.strip().split("\\s+")) {
            int at = word.indexOf('=');
            if (at < 1) {
                throw new IllegalArgumentException(
                        "a case with the word '" + word + "': expected name=value");
            }
            words.put(word.substring(0, at), word.substring(at + 1));
        }
        String algorithm = take(words, "algorithm", ANY);
        // One with an algorithm of its own is a gather unless it says otherwise.
        String operation =
                take(words, "op", algorithm.equals(ANY) ? ANY : Operation.GATHER.label());
        if (operation.equals(ANY) && !algorithm.equals(ANY)) {
            throw new IllegalArgumentException(
                    "op=any with algorithm=%s: expected one operator".formatted(algorithm));
        }
        Fault.Type kind = Fault.Type.of(take(words, "fault", "none"));
        Case parsed =
                new Case(
                        launcher(take(words, "launcher", "threads")),
                        (int) number(words, "ranks", 4, 1, 256),
                        operation.equals(ANY) ? null : Operation.of(operation),
                        algorithm.equals(ANY) ? null : algorithm,
                        (int) number(words, "calls", CALLS_PER_PAIR, 1, 100_000_000),
                        new Fault(
                                kind,
                                Fault.Phase.of(take(words, "phase", "first-chunk")),
                                (int) number(words, "rank", 0, 0, 255)),
                        number(words, "deadline", 2_000, 1, 86_400_000),
                        number(words, "seed", 1, Long.MIN_VALUE, Long.MAX_VALUE),
                        Boolean.parseBoolean(take(words, "every", "false")),
                        number(words, "delay", 500, 0, 10_000_000));
        if (!words.isEmpty()) {
            throw new IllegalArgumentException(
                    "a case with the unknown word '" + words.keySet().iterator().next() + "'");
        }
        return parsed;
    }

    private static Launcher launcher(String label) {
        for (Launcher launcher : Launcher.values()) {
            if (launcher.label().equals(label)) {
                return launcher;
            }
        }
        throw new IllegalArgumentException(
                "unknown launcher '" + label + "': expected threads, processes, mpi or hosts");
    }

    private static String take(Map<String, String> words, String name, String otherwise) {
        String value = words.remove(name);
        return value == null ? otherwise : value;
    }

    private static long number(
            Map<String, String> words, String name, long otherwise, long least, long most) {
        String value = take(words, name, Long.toString(otherwise));
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // reported below, with the value
        }
        throw new IllegalArgumentException(
                name + "=" + value + ": expected a number from " + least + " to " + most);
    }
}
