package dev.weft.model;

import static dev.weft.trace.View.COMM_ONLY;
import static dev.weft.trace.View.COMPUTE_ONLY;
import static dev.weft.trace.View.PIPELINED;

import dev.weft.model.Explorer.Search;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanException;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.trace.View;
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
                full(entries, Cases.of(algorithm, 2, CALLS, 2, 2));
                full(entries, Cases.of(algorithm, 1, CALLS, 1, 0));
                full(entries, Cases.of(algorithm, 1, CALLS, 1, 1, 0));
                full(entries, Cases.of(algorithm, 2, CALLS, 2, 2).withRows(rows()));
            }
        }
        full(entries, Cases.pingPong(CALLS, 2, 2));
        full(entries, Cases.pingPong(CALLS, 2, 2).withRows(rows()));
        full(entries, Cases.pingPong(CALLS, 1, 0, 1));
        full(entries, Cases.pingPong(CALLS, 1, 1, 1).withWrap());
        full(entries, Cases.pingPong(CALLS, 1, 1, 1).withViews(views()));
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 2, 2).inAnyOrder());
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 2, 2).withCounters().withWrap());
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 2, 1).withViews(views()));
        reduced(entries, Cases.pingPong(CALLS, 2, 2, 0, 2, 1));
        reduced(entries, Cases.of(Algorithm.RING, 1, Hosts.of(2, 2), CALLS, 2, 1, 2, 0));
        for (boolean all : SCATTER_AND_ALL) {
            for (Reduction reduction : reductions()) {
                full(entries, Cases.sums(reduction, all, Shards.of(1, 1), CALLS, 1, 1));
                full(
                        entries,
                        Cases.sums(reduction, all, Shards.of(1, 1), CALLS, 1, 1)
                                .withRows(
                                        Shards.of(1, 1),
                                        Shards.of(0, 1),
                                        Shards.of(1, 0),
                                        Shards.of(1, 1)));
                full(entries, Cases.sums(reduction, all, Shards.of(1, 1, 0), 2, 1, 0, 1));
                reduced(entries, Cases.sums(reduction, all, Shards.of(1, 1, 1), CALLS, 2, 1, 0));
            }
            Hosts hosts = Hosts.of(2, 1);
            Reduction chained = Reduction.HIERARCHICAL;
            full(entries, Cases.sums(chained, all, Shards.of(1, 1, 1), hosts, 2, 1, 0, 1));
            Shards two = Shards.of(1, 1);
            full(entries, Cases.sums(Reduction.CHAIN, all, two, 3, 2, 0).inAnyOrder());
            full(entries, Cases.sums(Reduction.CHAIN, all, two, 5, 1, 1).withViews(views()));
            full(entries, Cases.sums(Reduction.MESH_PUSH, all, two, 5, 1, 1).withViews(views()));
            full(entries, Cases.sums(Reduction.DIRECT, all, two, 5, 1, 1).withViews(views()));
        }
        return entries;
    }

    private static List<Reduction> reductions() {
        List<Reduction> reductions = new ArrayList<>(List.of(Reduction.values()));
        reductions.remove(Reduction.AUTO);
        return reductions;
    }

    /** Seconds: what somebody else's algorithm writes for two to five ranks, on one host or two. */
    static List<Entry> of(GatherWriter writer) {
        List<Entry> entries = new ArrayList<>();
        full(entries, Cases.of(writer, 1, CALLS, 2, 2));
        full(entries, Cases.of(writer, 1, CALLS, 2, 1).withViews(views()));
        full(entries, Cases.of(writer, 1, CALLS, 1, 1, 0));
        full(entries, Cases.of(writer, 1, CALLS, 2, 2, 1).withCounters());
        full(entries, Cases.of(writer, 1, 3, 1, 1, 1, 0));
        reduced(entries, Cases.of(writer, 1, CALLS, 2, 2, 0, 2, 1));
        reduced(entries, Cases.of(writer, 1, Hosts.of(2, 2), CALLS, 2, 1, 2, 0));
        return entries;
    }

    /** The same for somebody else's way to sum; rows to all ranks only if it can do that. */
    static List<Entry> of(ReductionWriter writer) {
        List<Entry> entries = new ArrayList<>();
        for (boolean all : SCATTER_AND_ALL) {
            try {
                add(entries, writer, all);
            } catch (PlanException e) {
                throw e;
            } catch (IllegalArgumentException e) {
                if (all) {
                    return entries;
                }
                throw e;
            }
        }
        return entries;
    }

    private static void add(List<Entry> entries, ReductionWriter writer, boolean all) {
        Shards two = Shards.of(1, 1);
        full(entries, Cases.sums(writer, all, two, CALLS, 2, 1));
        full(entries, Cases.sums(writer, all, two, CALLS, 1, 1).withViews(views()));
        full(entries, Cases.sums(writer, all, two, 3, 1, 1).inAnyOrder());
        full(entries, Cases.sums(writer, all, Shards.of(1, 1, 0), 2, 1, 0, 1));
        reduced(entries, Cases.sums(writer, all, Shards.of(1, 1, 1, 1), CALLS, 1, 2, 1, 1));
        reduced(entries, Cases.sums(writer, all, Shards.of(1, 0, 1, 1, 1), CALLS, 2, 2, 0, 2, 1));
        Hosts hosts = Hosts.of(2, 2);
        reduced(entries, Cases.sums(writer, all, Shards.of(1, 1, 1, 1), hosts, 3, 1, 2, 1, 0));
    }

    /** The smoke set and up to a minute more: three and four ranks. */
    static List<Entry> standard() {
        List<Entry> entries = smoke();
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 2, 2, 2));
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 2, 2, 1).withCounters());
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 1, 1, 1).inAnyOrder());
        full(entries, Cases.of(Algorithm.RING, 1, 3, 1, 1, 1, 0));
        full(entries, Cases.of(Algorithm.BIDIRECTIONAL_RING, 2, CALLS, 3, 3));
        full(entries, Cases.of(Algorithm.BIDIRECTIONAL_RING, 2, CALLS, 2, 1, 0));
        full(entries, Cases.of(Algorithm.MESH_PUSH, 1, CALLS, 2, 2, 1));
        full(entries, Cases.of(Algorithm.MESH_PUSH, 1, 3, 1, 1, 1, 0));
        full(entries, Cases.of(Algorithm.MESH_PULL, 1, CALLS, 2, 2, 1));
        full(entries, Cases.of(Algorithm.MESH_PULL, 2, CALLS, 2, 1, 1));
        full(entries, Cases.of(Algorithm.DIRECT, 1, CALLS, 2, 2, 2));
        full(entries, Cases.of(Algorithm.DIRECT, 1, CALLS, 1, 1, 1, 1));
        full(entries, Cases.of(Algorithm.SEQUENTIAL, 2, CALLS, 2, 2, 2));
        full(entries, Cases.pingPong(CALLS, 2, 2, 2));
        full(entries, Cases.pingPong(CALLS, 1, 1, 1, 1));
        full(entries, Cases.pingPong(CALLS, 2, 1, 0, 1));
        full(entries, Cases.pingPong(CALLS, 1, 1, 1).inAnyOrder());
        full(entries, Cases.pingPong(5, 1, 1, 1, 1).withViews(views()));
        for (Algorithm algorithm :
                List.of(
                        Algorithm.RING,
                        Algorithm.BIDIRECTIONAL_RING,
                        Algorithm.MESH_PUSH,
                        Algorithm.MESH_PULL)) {
            full(entries, Cases.of(algorithm, 1, Hosts.of(2, 1), 3, 1, 1, 1));
            reduced(entries, Cases.of(algorithm, 2, Hosts.of(2, 2), CALLS, 2, 2, 0, 2));
            reduced(entries, Cases.of(algorithm, 2, CALLS, 3, 3, 0, 3, 1, 3).inAnyOrder());
        }
        reduced(entries, Cases.of(Algorithm.DIRECT, 1, CALLS, 3, 3, 0, 3, 1, 3));
        for (boolean all : SCATTER_AND_ALL) {
            Shards three = Shards.of(1, 1, 1);
            full(entries, Cases.sums(Reduction.CHAIN, all, three, CALLS, 2, 1, 1));
            full(entries, Cases.sums(Reduction.MESH_PUSH, all, three, 3, 1, 1, 1));
            full(entries, Cases.sums(Reduction.DIRECT, all, three, 3, 1, 1, 1));
            full(
                    entries,
                    Cases.sums(Reduction.HIERARCHICAL, all, three, Hosts.of(1, 2), 3, 1, 0, 1));
            Shards five = Shards.of(1, 0, 1, 1, 1);
            Hosts hosts = Hosts.of(2, 2, 1);
            reduced(
                    entries,
                    Cases.sums(Reduction.HIERARCHICAL, all, five, hosts, CALLS, 2, 2, 0, 2, 1));
            for (Reduction reduction : reductions()) {
                reduced(entries, Cases.sums(reduction, all, five, CALLS, 2, 2, 0, 2, 1));
            }
            for (Reduction reduction : List.of(Reduction.CHAIN, Reduction.MESH_PUSH)) {
                Setting setting = Cases.sums(reduction, all, five, CALLS, 2, 2, 0, 2, 1);
                reduced(entries, setting.inAnyOrder());
            }
        }
        reduced(entries, Cases.pingPong(CALLS, 3, 3, 0, 3, 1, 3).inAnyOrder());
        return entries;
    }

    /** The standard set and some minutes more. */
    static List<Entry> all() {
        List<Entry> entries = standard();
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 1, 1, 1, 1));
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 2, 1, 1).inAnyOrder());
        full(entries, Cases.of(Algorithm.RING, 1, CALLS, 3, 3, 3));
        full(entries, Cases.of(Algorithm.BIDIRECTIONAL_RING, 2, CALLS, 2, 1, 1));
        full(entries, Cases.of(Algorithm.MESH_PUSH, 1, 5, 2, 2, 2));
        full(entries, Cases.of(Algorithm.MESH_PULL, 1, CALLS, 1, 1, 1, 0));
        full(entries, Cases.of(Algorithm.DIRECT, 1, CALLS, 2, 2, 2, 2));
        full(entries, Cases.pingPong(6, 3, 3, 3));
        full(entries, Cases.of(Algorithm.RING, 1, Hosts.of(2, 2), 3, 1, 0, 1, 0));
        reduced(entries, Cases.of(Algorithm.RING, 2, 6, 4, 4, 4, 4, 0, 4, 4, 4));
        reduced(entries, Cases.of(Algorithm.BIDIRECTIONAL_RING, 2, 6, 4, 4, 4, 4, 0, 4, 4, 4));
        reduced(entries, Cases.of(Algorithm.MESH_PULL, 2, 6, 4, 4, 4, 4, 0, 4, 4, 4));
        reduced(entries, Cases.pingPong(6, 4, 4, 4, 4, 0, 4, 4, 4));
        return entries;
    }

    private static View[] views() {
        return new View[] {PIPELINED, COMM_ONLY, PIPELINED, COMPUTE_ONLY, PIPELINED};
    }

    /** Of calls of two ranks with two rows each. */
    private static Shards[] rows() {
        return new Shards[] {
            Shards.of(2, 2), Shards.of(1, 0), Shards.of(0, 2), Shards.of(2, 1), Shards.of(0, 0)
        };
    }

    private static void full(List<Entry> entries, Setting setting) {
        entries.add(new Entry(setting, Search.FULL));
    }

    private static void reduced(List<Entry> entries, Setting setting) {
        entries.add(new Entry(setting, Search.REDUCED));
    }

    /** Where a mutant goes wrong. A rank without rows is one whom nobody waits for otherwise. */
    static List<Setting> against(Mutant mutant) {
        Shards two = Shards.of(1, 1);
        Shards three = Shards.of(1, 1, 1);
        Hosts hosts = Hosts.of(2, 1);
        Setting chain = Cases.sums(Reduction.CHAIN, false, two, 3, 0, 1);
        Setting pushed = Cases.sums(Reduction.MESH_PUSH, false, two, 3, 0, 1);
        return switch (mutant) {
            case NONE -> List.of();
            case OWN_CALL_ONLY -> List.of(Cases.of(Algorithm.MESH_PUSH, 1, 3, 1, 0), chain, pushed);
            case REUSE_OFF_BY_ONE ->
                    List.of(Cases.of(Algorithm.MESH_PULL, 1, 3, 1, 0), chain, pushed);
            case FINISH_WORD -> List.of(Cases.of(Algorithm.MESH_PUSH, 1, 3, 1, 0));
            case ONE_COPY -> List.of(Cases.of(Algorithm.MESH_PUSH, 1, 3, 1, 1), chain, pushed);
            case START_FIRST, START_IGNORED ->
                    List.of(
                            Cases.of(Algorithm.DIRECT, 1, 3, 1, 1),
                            Cases.of(Algorithm.MESH_PULL, 1, 3, 1, 1),
                            Cases.sums(Reduction.DIRECT, false, two, 3, 1, 1),
                            Cases.sums(Reduction.HIERARCHICAL, false, three, hosts, 2, 1, 0, 0));
            case SINGLE_EARLY -> List.of(Cases.pingPong(3, 1, 1), Cases.pingPong(3, 1, 1, 1));
            case COPY_SIGNALS_FIRST ->
                    List.of(
                            Cases.of(Algorithm.MESH_PUSH, 1, 3, 2, 1),
                            Cases.of(Algorithm.MESH_PUSH, 1, 3, 2, 1).withCounters(),
                            chain,
                            pushed,
                            Cases.sums(Reduction.CHAIN, true, three, 2, 1, 0, 0));
            case PRODUCT_SIGNALS_FIRST ->
                    List.of(
                            Cases.pingPong(3, 1, 1, 1, 1),
                            Cases.sums(Reduction.CHAIN, true, two, 2, 1, 1),
                            Cases.sums(Reduction.MESH_PUSH, true, two, 2, 1, 1));
            case SUM_SIGNALS_FIRST ->
                    List.of(
                            Cases.sums(Reduction.MESH_PUSH, true, two, 2, 1, 1),
                            Cases.sums(Reduction.RING, false, three, 2, 0, 1, 0));
            case COPY_WAITS_IGNORED ->
                    List.of(
                            Cases.of(Algorithm.RING, 1, 3, 1, 1, 1),
                            Cases.pingPong(3, 1, 1, 1, 1),
                            chain,
                            pushed,
                            Cases.sums(Reduction.CHAIN, true, three, 2, 1, 0, 0));
            case PRODUCT_WAITS_IGNORED ->
                    List.of(
                            Cases.of(Algorithm.RING, 1, 3, 1, 1),
                            Cases.sums(Reduction.CHAIN, false, two, 2, 1, 1),
                            Cases.sums(Reduction.HIERARCHICAL, false, three, hosts, 2, 1, 0, 0));
            case SUM_WAITS_IGNORED ->
                    List.of(
                            Cases.sums(Reduction.CHAIN, false, two, 2, 1, 1),
                            Cases.sums(Reduction.DIRECT, true, two, 2, 1, 1),
                            Cases.sums(Reduction.MESH_PUSH, false, two, 2, 1, 1),
                            Cases.sums(Reduction.SEQUENTIAL, false, two, 2, 1, 1));
            case JOIN_WAITS_IGNORED ->
                    List.of(
                            Cases.of(Algorithm.SEQUENTIAL, 1, 3, 1, 1),
                            Cases.sums(Reduction.SEQUENTIAL, false, two, 2, 1, 1).inAnyOrder());
            case VALUE_LOWERED ->
                    List.of(
                            Cases.of(Algorithm.RING, 1, 3, 1, 1, 1),
                            Cases.of(Algorithm.RING, 1, 3, 2, 1).withCounters(),
                            Cases.pingPong(3, 1, 1, 1),
                            Cases.sums(Reduction.CHAIN, false, two, 3, 1, 1));
        };
    }

    /** Where signals are lost and doubled. */
    static List<Setting> forFaults() {
        Shards three = Shards.of(1, 1, 1);
        return List.of(
                Cases.of(Algorithm.RING, 1, 3, 2, 1, 0).withCounters(),
                Cases.of(Algorithm.MESH_PUSH, 1, 3, 2, 0),
                Cases.of(Algorithm.MESH_PULL, 1, 3, 1, 1, 1),
                Cases.of(Algorithm.DIRECT, 1, 3, 1, 1, 0),
                Cases.pingPong(3, 1, 1, 1),
                Cases.sums(Reduction.CHAIN, true, Shards.of(1, 1), 3, 1, 1),
                Cases.sums(Reduction.MESH_PUSH, false, three, 3, 1, 1, 0),
                Cases.sums(Reduction.DIRECT, true, Shards.of(1, 1), 3, 1, 1),
                Cases.sums(Reduction.HIERARCHICAL, true, three, Hosts.of(2, 1), 2, 1, 0, 0));
    }
}
