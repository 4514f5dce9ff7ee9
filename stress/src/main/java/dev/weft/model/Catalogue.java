package dev.weft.model;

import static dev.weft.op.Operator.View.COMM_ONLY;
import static dev.weft.op.Operator.View.COMPUTE_ONLY;
import static dev.weft.op.Operator.View.PIPELINED;

import dev.weft.model.Explorer.Search;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import java.util.ArrayList;
import java.util.List;

/** What the command looks at. */
final class Catalogue {

    /** One line of the table. */
    record Entry(Setting setting, Search search) {}

    private static final int CALLS = 4;
    private static final boolean[] SCATTER_AND_ALL = {false, true};

    private Catalogue() {}

    /** Seconds: two ranks, and three where a rank has no rows. */
    static List<Entry> smoke() {
        List<Entry> entries = new ArrayList<>();
        for (Algorithm algorithm : Algorithm.values()) {
            if (algorithm != Algorithm.AUTO) {
                full(entries, Setting.of(algorithm, 2, CALLS, 2, 2));
                full(entries, Setting.of(algorithm, 1, CALLS, 1, 0));
                full(entries, Setting.of(algorithm, 1, CALLS, 1, 1, 0));
            }
        }
        full(entries, Setting.pingPong(CALLS, 2, 2));
        full(entries, Setting.pingPong(CALLS, 1, 0, 1));
        full(entries, Setting.pingPong(CALLS, 1, 1, 1).withWrap());
        full(entries, Setting.pingPong(CALLS, 1, 1, 1).withViews(views()));
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 2, 2).withAnyWorkers());
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 2, 2).withSummaries().withWrap());
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 2, 1).withViews(views()));
        reduced(entries, Setting.pingPong(CALLS, 2, 2, 0, 2, 1));
        reduced(entries, Setting.of(Algorithm.RING, 1, Hosts.of(2, 2), CALLS, 2, 1, 2, 0));
        for (boolean all : SCATTER_AND_ALL) {
            for (Reduction reduction : reductions()) {
                full(entries, Setting.sums(reduction, all, Shards.of(1, 1), CALLS, 1, 1));
                full(entries, Setting.sums(reduction, all, Shards.of(1, 1, 0), 2, 1, 0, 1));
                reduced(entries, Setting.sums(reduction, all, Shards.of(1, 1, 1), CALLS, 2, 1, 0));
            }
            Hosts hosts = Hosts.of(2, 1);
            Reduction chained = Reduction.HIERARCHICAL;
            full(entries, Setting.sums(chained, all, Shards.of(1, 1, 1), hosts, 2, 1, 0, 1));
            Shards two = Shards.of(1, 1);
            full(entries, Setting.sums(Reduction.CHAIN, all, two, 3, 2, 0).withAnyWorkers());
            full(entries, Setting.sums(Reduction.CHAIN, all, two, 5, 1, 1).withViews(views()));
            full(entries, Setting.sums(Reduction.MESH_PUSH, all, two, 5, 1, 1).withViews(views()));
            full(entries, Setting.sums(Reduction.DIRECT, all, two, 5, 1, 1).withViews(views()));
        }
        return entries;
    }

    private static List<Reduction> reductions() {
        List<Reduction> reductions = new ArrayList<>(List.of(Reduction.values()));
        reductions.remove(Reduction.AUTO);
        return reductions;
    }

    /** Seconds: what somebody else's algorithm writes for two to five ranks, on one host or two. */
    static List<Entry> of(PlanWriter writer) {
        List<Entry> entries = new ArrayList<>();
        full(entries, Setting.of(writer, 1, CALLS, 2, 2));
        full(entries, Setting.of(writer, 1, CALLS, 2, 1).withViews(views()));
        full(entries, Setting.of(writer, 1, CALLS, 1, 1, 0));
        full(entries, Setting.of(writer, 1, CALLS, 2, 2, 1).withSummaries());
        full(entries, Setting.of(writer, 1, 3, 1, 1, 1, 0));
        reduced(entries, Setting.of(writer, 1, CALLS, 2, 2, 0, 2, 1));
        reduced(entries, Setting.of(writer, 1, Hosts.of(2, 2), CALLS, 2, 1, 2, 0));
        return entries;
    }

    /** The smoke set and up to a minute more: three and four ranks. */
    static List<Entry> standard() {
        List<Entry> entries = smoke();
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 2, 2, 2));
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 2, 2, 1).withSummaries());
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 1, 1, 1).withAnyWorkers());
        full(entries, Setting.of(Algorithm.RING, 1, 3, 1, 1, 1, 0));
        full(entries, Setting.of(Algorithm.BIDIRECTIONAL_RING, 2, CALLS, 3, 3));
        full(entries, Setting.of(Algorithm.BIDIRECTIONAL_RING, 2, CALLS, 2, 1, 0));
        full(entries, Setting.of(Algorithm.MESH_PUSH, 1, CALLS, 2, 2, 1));
        full(entries, Setting.of(Algorithm.MESH_PUSH, 1, 3, 1, 1, 1, 0));
        full(entries, Setting.of(Algorithm.MESH_PULL, 1, CALLS, 2, 2, 1));
        full(entries, Setting.of(Algorithm.MESH_PULL, 2, CALLS, 2, 1, 1));
        full(entries, Setting.of(Algorithm.DIRECT, 1, CALLS, 2, 2, 2));
        full(entries, Setting.of(Algorithm.DIRECT, 1, CALLS, 1, 1, 1, 1));
        full(entries, Setting.of(Algorithm.SEQUENTIAL, 2, CALLS, 2, 2, 2));
        full(entries, Setting.pingPong(CALLS, 2, 2, 2));
        full(entries, Setting.pingPong(CALLS, 1, 1, 1, 1));
        full(entries, Setting.pingPong(CALLS, 2, 1, 0, 1));
        full(entries, Setting.pingPong(CALLS, 1, 1, 1).withAnyWorkers());
        full(entries, Setting.pingPong(5, 1, 1, 1, 1).withViews(views()));
        for (Algorithm algorithm :
                List.of(
                        Algorithm.RING,
                        Algorithm.BIDIRECTIONAL_RING,
                        Algorithm.MESH_PUSH,
                        Algorithm.MESH_PULL)) {
            full(entries, Setting.of(algorithm, 1, Hosts.of(2, 1), 3, 1, 1, 1));
            reduced(entries, Setting.of(algorithm, 2, Hosts.of(2, 2), CALLS, 2, 2, 0, 2));
            reduced(entries, Setting.of(algorithm, 2, CALLS, 3, 3, 0, 3, 1, 3).withAnyWorkers());
        }
        reduced(entries, Setting.of(Algorithm.DIRECT, 1, CALLS, 3, 3, 0, 3, 1, 3));
        for (boolean all : SCATTER_AND_ALL) {
            Shards three = Shards.of(1, 1, 1);
            full(entries, Setting.sums(Reduction.CHAIN, all, three, CALLS, 2, 1, 1));
            full(entries, Setting.sums(Reduction.MESH_PUSH, all, three, 3, 1, 1, 1));
            full(entries, Setting.sums(Reduction.DIRECT, all, three, 3, 1, 1, 1));
            full(
                    entries,
                    Setting.sums(Reduction.HIERARCHICAL, all, three, Hosts.of(1, 2), 3, 1, 0, 1));
            Shards five = Shards.of(1, 0, 1, 1, 1);
            Hosts hosts = Hosts.of(2, 2, 1);
            reduced(
                    entries,
                    Setting.sums(Reduction.HIERARCHICAL, all, five, hosts, CALLS, 2, 2, 0, 2, 1));
            for (Reduction reduction : reductions()) {
                reduced(entries, Setting.sums(reduction, all, five, CALLS, 2, 2, 0, 2, 1));
            }
            for (Reduction reduction : List.of(Reduction.CHAIN, Reduction.MESH_PUSH)) {
                Setting setting = Setting.sums(reduction, all, five, CALLS, 2, 2, 0, 2, 1);
                reduced(entries, setting.withAnyWorkers());
            }
        }
        reduced(entries, Setting.pingPong(CALLS, 3, 3, 0, 3, 1, 3).withAnyWorkers());
        return entries;
    }

    /** The standard set and some minutes more. */
    static List<Entry> all() {
        List<Entry> entries = standard();
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 1, 1, 1, 1));
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 2, 1, 1).withAnyWorkers());
        full(entries, Setting.of(Algorithm.RING, 1, CALLS, 3, 3, 3));
        full(entries, Setting.of(Algorithm.BIDIRECTIONAL_RING, 2, CALLS, 2, 1, 1));
        full(entries, Setting.of(Algorithm.MESH_PUSH, 1, 5, 2, 2, 2));
        full(entries, Setting.of(Algorithm.MESH_PULL, 1, CALLS, 1, 1, 1, 0));
        full(entries, Setting.of(Algorithm.DIRECT, 1, CALLS, 2, 2, 2, 2));
        full(entries, Setting.pingPong(6, 3, 3, 3));
        full(entries, Setting.of(Algorithm.RING, 1, Hosts.of(2, 2), 3, 1, 0, 1, 0));
        reduced(entries, Setting.of(Algorithm.RING, 2, 6, 4, 4, 4, 4, 0, 4, 4, 4));
        reduced(entries, Setting.of(Algorithm.BIDIRECTIONAL_RING, 2, 6, 4, 4, 4, 4, 0, 4, 4, 4));
        reduced(entries, Setting.of(Algorithm.MESH_PULL, 2, 6, 4, 4, 4, 4, 0, 4, 4, 4));
        reduced(entries, Setting.pingPong(6, 4, 4, 4, 4, 0, 4, 4, 4));
        return entries;
    }

    private static View[] views() {
        return new View[] {PIPELINED, COMM_ONLY, PIPELINED, COMPUTE_ONLY, PIPELINED};
    }

    private static void full(List<Entry> entries, Setting setting) {
        entries.add(new Entry(setting, Search.FULL));
    }

    private static void reduced(List<Entry> entries, Setting setting) {
        entries.add(new Entry(setting, Search.REDUCED));
    }

    /** Where a mutant goes wrong. A rank without rows is one whom nobody waits for otherwise. */
    static List<Setting> against(Mutant mutant) {
        List<Setting> settings = new ArrayList<>();
        Shards two = Shards.of(1, 1);
        switch (mutant) {
            case OWN_CALL_ONLY, REUSE_OFF_BY_ONE, ONE_SLOT, FLAG_FIRST, NEED_IGNORED -> {
                settings.add(gatherAgainst(mutant));
                settings.add(Setting.sums(Reduction.CHAIN, false, two, 3, 0, 1));
                settings.add(Setting.sums(Reduction.MESH_PUSH, false, two, 3, 0, 1));
                if (mutant == Mutant.FLAG_FIRST || mutant == Mutant.NEED_IGNORED) {
                    // Whole sums are handed on.
                    Shards three = Shards.of(1, 1, 1);
                    settings.add(Setting.sums(Reduction.CHAIN, true, three, 2, 1, 0, 0));
                }
            }
            case START_FIRST, START_IGNORED -> {
                settings.add(gatherAgainst(mutant));
                settings.add(Setting.sums(Reduction.DIRECT, false, two, 3, 1, 1));
                Shards three = Shards.of(1, 1, 1);
                Hosts hosts = Hosts.of(2, 1);
                settings.add(Setting.sums(Reduction.HIERARCHICAL, false, three, hosts, 2, 1, 0, 0));
            }
            case MULTIPLIED_FIRST -> {
                settings.add(Setting.sums(Reduction.CHAIN, true, two, 2, 1, 1));
                settings.add(Setting.sums(Reduction.MESH_PUSH, true, two, 2, 1, 1));
            }
            case PARTIAL_IGNORED -> {
                settings.add(Setting.sums(Reduction.CHAIN, false, two, 2, 1, 1));
                Hosts hosts = Hosts.of(2, 1);
                Shards three = Shards.of(1, 1, 1);
                settings.add(Setting.sums(Reduction.HIERARCHICAL, false, three, hosts, 2, 1, 0, 0));
            }
            case SUMMED_FIRST -> {
                settings.add(Setting.sums(Reduction.MESH_PUSH, true, two, 2, 1, 1));
                Shards three = Shards.of(1, 1, 1);
                settings.add(Setting.sums(Reduction.RING, false, three, 2, 0, 1, 0));
            }
            case WHOLE_IGNORED -> {
                settings.add(Setting.sums(Reduction.CHAIN, false, two, 2, 1, 1));
                settings.add(Setting.sums(Reduction.DIRECT, true, two, 2, 1, 1));
            }
            case PARTS_IGNORED -> {
                settings.add(Setting.sums(Reduction.MESH_PUSH, false, two, 2, 1, 1));
                settings.add(Setting.sums(Reduction.SEQUENTIAL, false, two, 2, 1, 1));
            }
            default -> settings.add(gatherAgainst(mutant));
        }
        return settings;
    }

    private static Setting gatherAgainst(Mutant mutant) {
        return switch (mutant) {
            case NONE,
                    MULTIPLIED_FIRST,
                    PARTIAL_IGNORED,
                    SUMMED_FIRST,
                    WHOLE_IGNORED,
                    PARTS_IGNORED ->
                    throw new IllegalArgumentException(mutant + " breaks no gather");
            case OWN_CALL_ONLY, FINISH_WORD -> Setting.of(Algorithm.MESH_PUSH, 1, 3, 1, 0);
            case REUSE_OFF_BY_ONE -> Setting.of(Algorithm.MESH_PULL, 1, 3, 1, 0);
            case ONE_SLOT -> Setting.of(Algorithm.MESH_PUSH, 1, 3, 1, 1);
            case START_FIRST, START_IGNORED -> Setting.of(Algorithm.DIRECT, 1, 3, 1, 1);
            case FLAG_FIRST -> Setting.of(Algorithm.MESH_PUSH, 1, 3, 2, 1);
            case COUNTER_FIRST -> Setting.of(Algorithm.MESH_PUSH, 1, 3, 2, 1).withSummaries();
            case NEED_IGNORED -> Setting.of(Algorithm.RING, 1, 3, 1, 1, 1);
            case CREDIT_IGNORED, RELEASE_EARLY -> Setting.pingPong(3, 1, 1);
            case CREDIT_OFF_BY_ONE -> Setting.pingPong(3, 1, 1, 1);
        };
    }

    /** Where signals are lost and doubled. */
    static List<Setting> forFaults() {
        return List.of(
                Setting.of(Algorithm.RING, 1, 3, 2, 1, 0).withSummaries(),
                Setting.of(Algorithm.MESH_PUSH, 1, 3, 2, 0),
                Setting.of(Algorithm.MESH_PULL, 1, 3, 1, 1, 1),
                Setting.of(Algorithm.DIRECT, 1, 3, 1, 1, 0),
                Setting.pingPong(3, 1, 1, 1),
                Setting.sums(Reduction.CHAIN, true, Shards.of(1, 1), 3, 1, 1),
                Setting.sums(Reduction.MESH_PUSH, false, Shards.of(1, 1, 1), 3, 1, 1, 0),
                Setting.sums(Reduction.DIRECT, true, Shards.of(1, 1), 3, 1, 1),
                Setting.sums(
                        Reduction.HIERARCHICAL,
                        true,
                        Shards.of(1, 1, 1),
                        Hosts.of(2, 1),
                        2,
                        1,
                        0,
                        0));
    }
}
