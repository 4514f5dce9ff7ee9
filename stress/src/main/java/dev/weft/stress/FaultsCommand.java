package dev.weft.stress;

import dev.weft.plan.Algorithm;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Every fault in every phase on every fabric, and what became of it. */
@Command(
        name = "faults",
        mixinStandardHelpOptions = true,
        description =
                "Lets everything go wrong that can: signals lost, repeated, late and corrupted, ranks"
                        + " killed and frozen in every phase, on every fabric, and the command itself"
                        + " interrupted or without room. Prints a table; fails where a rank hangs, gives"
                        + " a wrong result or an untyped error, or something is left behind.",
        footer = {
            "",
            "Examples:",
            "  ./weft faults                             everything: about an hour and a half",
            "  ./weft faults --launcher threads          about two minutes",
            "  ./weft faults --op matmul-allreduce       one operator",
            "  ./weft faults --case \"launcher=processes ranks=4 fault=kill phase=close rank=1\""
        })
final class FaultsCommand implements Callable<Integer> {

    @Spec CommandSpec spec;

    @Option(
            names = "--launcher",
            paramLabel = "NAME",
            description = "Only this one: threads, processes, mpi, hosts or command.")
    String launcher;

    @Option(
            names = "--op",
            paramLabel = "NAME",
            description =
                    "Only this operator: allgather-matmul, matmul-reduce-scatter or"
                            + " matmul-allreduce.")
    String operation;

    @Option(
            names = "--case",
            paramLabel = "WORDS",
            description = "One case, as the table's last column tells it.")
    String single;

    @Option(
            names = "--deadline",
            paramLabel = "MS",
            description = "The deadline of every wait (default: ${DEFAULT-VALUE}).")
    long deadlineMs = 3_000;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Other problems with the same faults.")
    long seed = 1;

    @Override
    public Integer call() {
        FaultTable table = new FaultTable(spec.commandLine().getOut());
        if (single != null) {
            Ending ending = usable(single).execute();
            table.row(ending);
            ending.ranks().forEach(rank -> table.line("  " + tell(rank)));
            return table.problems() == 0 ? 0 : 1;
        }
        operations();
        for (Case.Launcher each : Case.Launcher.values()) {
            if (wants(each.label()) && isThere(each, table)) {
                cases(each).forEach(run -> table.row(run.execute()));
            }
        }
        if (wants("command")) {
            new CommandFaults(table).run();
        }
        table.end();
        return table.problems() == 0 ? 0 : 1;
    }

    private boolean wants(String label) {
        List<String> known = List.of("threads", "processes", "mpi", "hosts", "command");
        if (launcher != null && !known.contains(launcher)) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--launcher " + launcher + ": expected one of " + String.join(", ", known));
        }
        return launcher == null || launcher.equals(label);
    }

    private Case usable(String words) {
        try {
            return Case.parse(words);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "--case: " + e.getMessage(), e);
        }
    }

    private static boolean isThere(Case.Launcher each, FaultTable table) {
        if (each.isMpi() && MpirunRanks.unavailable().isPresent()) {
            table.line("skipped " + each.label() + ": " + MpirunRanks.unavailable().get());
            return false;
        }
        return true;
    }

    private static String tell(RankEnd end) {
        return "rank %d: %s %s %s"
                .formatted(end.rank(), end.how().label(), end.error(), end.message());
    }

    /** All faults in all of their phases; algorithms take turns. */
    private List<Case> cases(Case.Launcher on) {
        List<Case> cases = new ArrayList<>();
        for (Operation each : operations()) {
            cases.addAll(cases(on, each));
        }
        return cases;
    }

    private List<Operation> operations() {
        if (operation == null) {
            return List.of(Operation.values());
        }
        try {
            return List.of(Operation.of(operation));
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "--op: " + e.getMessage(), e);
        }
    }

    private List<Case> cases(Case.Launcher on, Operation each) {
        List<String> turns = each.algorithms(on != Case.Launcher.HOSTS);
        List<Case> cases = new ArrayList<>();
        for (Fault.Type kind : Fault.Type.values()) {
            for (Fault.Phase phase : kind.phases()) {
                if (phase == Fault.Phase.RENDEZVOUS && on == Case.Launcher.THREADS
                        || kind == Fault.Type.REORDER && on == Case.Launcher.HOSTS) {
                    continue;
                }
                String algorithm =
                        kind == Fault.Type.REORDER
                                ? Algorithm.MESH_PUSH.label()
                                : turns.get(cases.size() % turns.size());
                cases.add(
                        new Case(
                                on,
                                4,
                                each,
                                kind == Fault.Type.NONE ? null : algorithm,
                                Case.CALLS_PER_PAIR,
                                new Fault(kind, phase, 1),
                                deadlineMs,
                                seed,
                                kind == Fault.Type.DELAY,
                                1_000));
            }
        }
        return cases;
    }
}
