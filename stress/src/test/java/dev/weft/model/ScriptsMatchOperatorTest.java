package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.model.RecordingFabric.Event;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.MatmulAllReduce;
import dev.weft.op.MatmulReduceBuilder;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The scripts say of every thread what the operator does: the same words are awaited and raised
 * with the same values in the same order, and a waiter allows its word the same lead. When a
 * release word is raised depends on who comes last, so only the waits for it are compared.
 */
class ScriptsMatchOperatorTest {

    private static final long K = 2;

    /** Its ranks get from each other what has come over the network. */
    private static final String TWO_HOSTS = "two hosts";

    private static final List<View> VIEWS =
            List.of(View.PIPELINED, View.COMM_ONLY, View.PIPELINED, View.COMPUTE_ONLY);

    static Stream<Arguments> operators() {
        List<Arguments> all = new ArrayList<>();
        for (Algorithm algorithm : Algorithm.values()) {
            if (algorithm != Algorithm.AUTO) {
                all.add(operator(algorithm.label(), builder -> builder.algorithm(algorithm)));
            }
        }
        all.add(operator("ping-pong", AllGatherMatmulBuilder::pingPong));
        all.add(
                operator(
                        "counters",
                        b -> b.algorithm(Algorithm.MESH_PUSH).waitForSummary().commWorkers(2)));
        all.add(operator("columns", b -> b.algorithm(Algorithm.RING).chunkCols(1)));
        all.add(operator(TWO_HOSTS, b -> b.algorithm(Algorithm.MESH_PULL)));
        return all.stream();
    }

    private static Arguments operator(String name, UnaryOperator<AllGatherMatmulBuilder> options) {
        return Arguments.of(name, options);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("operators")
    void wordByWord(String name, UnaryOperator<AllGatherMatmulBuilder> options) {
        Shards shards = Shards.of(3, 0, 2);
        RecordingFabric[] recordings = new RecordingFabric[shards.ranks()];
        Hosts hosts = name.equals(TWO_HOSTS) ? Hosts.of(2, 1) : Hosts.one(shards.ranks());
        RankPlan[] plans = new RankPlan[shards.ranks()];
        try (World world = World.threads(shards.ranks())) {
            world.run(
                    fabric -> {
                        RecordingFabric recording =
                                new RecordingFabric(Transport.of(fabric), hosts);
                        recordings[fabric.rank()] = recording;
                        plans[fabric.rank()] = runCalls(recording, shards, options);
                    });
        }
        boolean counters = name.equals("counters");
        Setting setting = new Setting(name, List.of(plans), hosts, VIEWS, 1, false, counters);
        Map<String, List<String>> expected = scripts(setting, Mutant.NONE);
        Map<String, List<String>> actual = new TreeMap<>();
        for (int rank = 0; rank < recordings.length; rank++) {
            Offsets offsets = new Offsets(plans[rank]);
            int of = rank;
            recordings[rank]
                    .events()
                    .forEach((thread, list) -> put(actual, role(of, thread), texts(list, offsets)));
        }
        assertTrue(expected.keySet().containsAll(actual.keySet()), actual.keySet().toString());
        assertFalse(actual.isEmpty());
        expected.forEach(
                (thread, lines) ->
                        assertEquals(lines, actual.getOrDefault(thread, List.of()), thread));
    }

    static Stream<Arguments> reductions() {
        List<Arguments> all = new ArrayList<>();
        for (Reduction reduction : Reduction.values()) {
            if (reduction != Reduction.AUTO) {
                all.add(Arguments.of(reduction, false));
                all.add(Arguments.of(reduction, true));
            }
        }
        return all.stream();
    }

    /**
     * A compute worker finishes rows at once where they have come, so its order is not compared.
     */
    @ParameterizedTest(name = "{0}, all {1}")
    @MethodSource("reductions")
    void sumsWordByWord(Reduction reduction, boolean everywhere) {
        Shards rows = Shards.of(2, 0, 1);
        Shards inner = Shards.of(1, 2, 0);
        Hosts hosts =
                reduction == Reduction.HIERARCHICAL ? Hosts.of(2, 1) : Hosts.one(rows.ranks());
        RecordingFabric[] recordings = new RecordingFabric[rows.ranks()];
        RankPlan[] plans = new RankPlan[rows.ranks()];
        try (World world = World.threads(rows.ranks())) {
            world.run(
                    fabric -> {
                        RecordingFabric recording =
                                new RecordingFabric(Transport.of(fabric), hosts);
                        recordings[fabric.rank()] = recording;
                        plans[fabric.rank()] =
                                runSums(recording, reduction, everywhere, rows, inner);
                    });
        }
        Setting setting =
                new Setting(reduction.label(), List.of(plans), hosts, VIEWS, 1, false, false);
        Map<String, List<String>> expected = scripts(setting, Mutant.NONE);
        Map<String, List<String>> actual = new TreeMap<>();
        for (int rank = 0; rank < recordings.length; rank++) {
            Offsets offsets = Offsets.ofSums(plans[rank]);
            int of = rank;
            recordings[rank]
                    .events()
                    .forEach(
                            (thread, list) ->
                                    put(
                                            actual,
                                            role(of, thread),
                                            texts(withoutLooks(list), offsets)));
        }
        assertTrue(expected.keySet().containsAll(actual.keySet()), actual.keySet().toString());
        expected.forEach(
                (thread, lines) -> {
                    List<String> found = new ArrayList<>(actual.getOrDefault(thread, List.of()));
                    List<String> wanted = new ArrayList<>(lines);
                    if (thread.contains("compute")) {
                        found.sort(null);
                        wanted.sort(null);
                    }
                    assertEquals(wanted, found, thread);
                });
    }

    /** Who only looks whether rows have come says nothing of what it awaits. */
    private static List<Event> withoutLooks(List<Event> events) {
        return events.stream()
                .filter(event -> !event.isWait() || event.lead() != Awaited.ANY_LEAD)
                .toList();
    }

    private static RankPlan runSums(
            RecordingFabric recording,
            Reduction reduction,
            boolean everywhere,
            Shards rows,
            Shards inner) {
        Transport fabric = recording.fabric();
        MatmulReduceBuilder<? extends Operator<Matrix>> builder =
                everywhere ? MatmulAllReduce.on(fabric) : MatmulReduceScatter.on(fabric);
        try (Arena arena = Arena.ofConfined()) {
            builder.a(rows, inner, DType.FP32)
                    .b(Matrix.allocate(arena, DType.FP32, inner.rows(fabric.rank()), 1))
                    .algorithm(reduction)
                    .engine("scalar")
                    .chunkRows(1)
                    .computeWorkers(1);
            try (Operator<Matrix> operator = builder.prepare()) {
                VIEWS.forEach(operator::callInPlace);
                return operator.plan();
            }
        }
    }

    /** What is compared tells each of these from the protocol. */
    @ParameterizedTest
    @EnumSource(
            names = {
                "OWN_CALL_ONLY",
                "REUSE_OFF_BY_ONE",
                "FINISH_WORD",
                "NEED_IGNORED",
                "CREDIT_IGNORED",
                "CREDIT_OFF_BY_ONE"
            })
    void aMutantWouldNotMatch(Mutant mutant) {
        Setting setting = Setting.pingPong(3, 1, 1, 1);
        assertNotEquals(scripts(setting, Mutant.NONE), scripts(setting, mutant));
    }

    private static RankPlan runCalls(
            RecordingFabric recording,
            Shards shards,
            UnaryOperator<AllGatherMatmulBuilder> options) {
        try (Arena arena = Arena.ofConfined()) {
            AllGatherMatmulBuilder builder =
                    AllGatherMatmul.on(recording.fabric())
                            .a(shards, DType.FP32)
                            .b(Matrix.allocate(arena, DType.FP32, K, 1))
                            .engine("scalar")
                            .chunkRows(1)
                            .computeWorkers(1);
            try (AllGatherMatmul operator = options.apply(builder).prepare()) {
                VIEWS.forEach(operator::callInPlace);
                return operator.plan();
            }
        }
    }

    /** What each thread's script awaits and raises beyond its own rank's team. */
    private static Map<String, List<String>> scripts(Setting setting, Mutant mutant) {
        Model model = Protocol.model(setting, mutant, SignalFaults.sound());
        Map<String, List<String>> scripts = new TreeMap<>();
        for (int thread = 0; thread < model.threads(); thread++) {
            List<String> lines = new ArrayList<>();
            for (int i = 0; i < model.stepCount(thread); i++) {
                Step step = model.step(thread, i);
                for (Wait wait : step.waits()) {
                    if (wait.word().kind() != Word.Kind.LOCAL) {
                        lines.add("awaits " + wait + lead(wait.word().mostAhead()));
                    }
                }
                if (step.raises() instanceof OwnedWord word && word.kind() != Word.Kind.LOCAL) {
                    lines.add(step.text().substring(step.text().indexOf(": ") + 2));
                }
            }
            scripts.put(model.name(thread), lines);
        }
        return scripts;
    }

    private static void put(Map<String, List<String>> actual, String thread, List<String> lines) {
        if (!lines.isEmpty()) {
            actual.put(thread, lines);
        }
    }

    /** A thread's name in the model. */
    private static String role(int rank, String thread) {
        String worker = "weft-" + rank + "-";
        return "rank "
                + rank
                + " "
                + (thread.startsWith(worker) ? thread.substring(worker.length()) : "caller");
    }

    private static List<String> texts(List<Event> events, Offsets offsets) {
        List<String> lines = new ArrayList<>();
        for (Event event : events) {
            String word = offsets.word(event.home(), event.offset());
            if (event.isWait()) {
                String wait = word + " to reach " + event.value();
                lines.add("awaits " + wait + lead(event.lead()));
            } else if (!word.startsWith("release")) {
                lines.add("raises " + word + " to " + event.value());
            }
        }
        return lines;
    }

    private static String lead(int most) {
        return " and at most " + most + " past it";
    }

    /** The map of bytes of an operator's part, as docs/shared-memory.md draws it. */
    private static final class Offsets {

        private static final long LINE = 128;
        private final Map<Long, String> names = new TreeMap<>();

        private Offsets() {}

        /** The map of {@code SumMemory}. */
        static Offsets ofSums(RankPlan plan) {
            Offsets offsets = new Offsets();
            offsets.names.put(0L, "start[%d]");
            List<String> kinds = new ArrayList<>(List.of("partial[%d]", "whole[%d]"));
            for (int rank = 0; rank < plan.ranks(); rank++) {
                kinds.add("own[" + rank + "]");
            }
            kinds.addAll(List.of("multiplied[%d]", "summed[%d]"));
            long at = 2 * LINE;
            for (String kind : kinds) {
                for (int tag = 0; tag < plan.chunks().total(); tag++, at += 4) {
                    offsets.names.put(at, kind + "[" + tag + "]");
                }
            }
            return offsets;
        }

        Offsets(RankPlan plan) {
            names.put(0L, "start[%d]");
            names.put(LINE, "release[%d]");
            long at = 2 * LINE;
            for (int source = 0; source < plan.ranks(); source++) {
                int count = plan.chunks().count(source);
                for (int chunk = 0; chunk < count; chunk++) {
                    int tag = plan.chunks().tag(source, chunk);
                    names.put(at + 4L * chunk, "flag[%d][" + tag + "]");
                }
                at += Math.ceilDiv(4L * count, LINE) * LINE;
            }
            for (int rank = 0; rank < plan.ranks(); rank++) {
                for (int lane = 0; lane < plan.lanes().size(); lane++, at += LINE) {
                    names.put(at, "counter[%d][" + rank + "." + lane + "]");
                }
            }
        }

        String word(int home, long offset) {
            return String.format(names.getOrDefault(offset, "byte " + offset + " of %d"), home);
        }
    }
}
