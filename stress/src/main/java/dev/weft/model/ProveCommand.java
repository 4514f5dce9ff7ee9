package dev.weft.model;

import dev.weft.model.Catalogue.Entry;
import dev.weft.model.Explorer.Search;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.PlanException;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionWriter;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code weft prove}: the progress protocol, in every interleaving of small groups. */
@Command(
        name = "prove",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description =
                "Runs Weft's own plans on a model of the progress protocol, over several"
                        + " calls back to back, in every order in which the threads of all ranks"
                        + " can take their steps: nobody reads what is not there yet or is"
                        + " overwritten, and everybody ends. Then breaks the protocol in every way"
                        + " it knows and must find each.",
        footer = {
            "",
            "Examples:",
            "  ./weft prove                     about a minute",
            "  ./weft prove --smoke             seconds",
            "  ./weft prove --all               minutes, larger groups",
            "  ./weft prove --algorithm ring    one algorithm",
            "",
            "Exit codes: 0 proven and all mutants found, 1 not so, 2 wrong usage."
        })
public final class ProveCommand implements Callable<Integer> {

    private static final int FOUND_PROBLEM = 1;
    private static final int LINES_OF_TRACE = 8;

    /** After the label, which is as wide as the longest. */
    private static final String ROW = " %5s  %-15s %5s  %-7s %9s %11s %5s  %-5s %7s  %s%n";

    @Spec private CommandSpec spec;

    @Option(names = "--smoke", description = "A small set.")
    private boolean smoke;

    @Option(names = "--all", description = "A large set.")
    private boolean all;

    @Option(
            names = "--algorithm",
            paramLabel = "NAME",
            description =
                    "The plans of one algorithm alone, which may be your own: see"
                            + " docs/algorithms.md.")
    private String algorithm;

    @Option(
            names = "--states",
            paramLabel = "N",
            description = "Give a line up after so many states (default: what fits in memory).")
    private Integer mostStates;

    private PrintWriter out;
    private int labelWidth;

    @Override
    public Integer call() {
        if (smoke && all) {
            throw new ParameterException(
                    spec.commandLine(), "--smoke and --all: expected one of the two");
        }
        if (algorithm != null && (smoke || all)) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--algorithm with --smoke or --all: it has a set of its own");
        }
        if (mostStates != null && mostStates < 1) {
            throw new ParameterException(
                    spec.commandLine(), "--states " + mostStates + ": expected 1 or more");
        }
        out = spec.commandLine().getOut();
        if (algorithm != null) {
            return provesAlgorithm();
        }
        boolean fine = proves(entries());
        fine &= survivesFaults();
        fine &= findsMutants();
        out.println();
        out.println(fine ? "Proven; every mutant was found." : "NOT PROVEN: see above.");
        out.flush();
        return fine ? 0 : FOUND_PROBLEM;
    }

    private int provesAlgorithm() {
        List<Entry> entries = new ArrayList<>();
        try {
            if (!isReduction()) {
                entries.addAll(Catalogue.of(GatherWriter.named(algorithm)));
            } else {
                entries.addAll(Catalogue.of(ReductionWriter.named(algorithm)));
                if (isGather()) {
                    entries.addAll(Catalogue.of(GatherWriter.named(algorithm)));
                }
            }
        } catch (IllegalArgumentException e) {
            String unnamed = e.getMessage().replaceFirst("^algorithm '[^']*': ", "");
            throw new ParameterException(
                    spec.commandLine(), "--algorithm " + algorithm + ": " + unnamed);
        }
        boolean fine = proves(entries);
        out.println();
        out.println(fine ? "Proven." : "NOT PROVEN: see above.");
        out.flush();
        return fine ? 0 : FOUND_PROBLEM;
    }

    private boolean isReduction() {
        try {
            return ReductionWriter.named(algorithm) != Reduction.AUTO;
        } catch (PlanException e) {
            throw e;
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    private boolean isGather() {
        try {
            return GatherWriter.named(algorithm) != Algorithm.AUTO;
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    private List<Entry> entries() {
        if (smoke) {
            return Catalogue.smoke();
        }
        return all ? Catalogue.all() : Catalogue.standard();
    }

    private int limit() {
        return mostStates == null
                ? StateStore.fitting(Runtime.getRuntime().maxMemory())
                : mostStates;
    }

    private boolean proves(List<Entry> entries) {
        labelWidth =
                entries.stream()
                        .mapToInt(entry -> entry.setting().label().length())
                        .max()
                        .orElse(0);
        row(
                "algorithm",
                "ranks",
                "chunks",
                "calls",
                "search",
                "states",
                "transitions",
                "depth",
                "lead",
                "ms",
                "result");
        int proven = 0;
        for (Entry entry : entries) {
            proven += proves(entry) ? 1 : 0;
            out.flush();
        }
        out.printf("%d of %d proven.%n", proven, entries.size());
        return proven == entries.size();
    }

    private void row(String label, Object... cells) {
        out.print(label + " ".repeat(Math.max(0, labelWidth - label.length())));
        out.printf(ROW, cells);
    }

    private boolean proves(Entry entry) {
        long start = System.nanoTime();
        Setting setting = entry.setting();
        Model model = Protocol.model(setting, Mutant.NONE, Faults.none());
        SearchResult outcome = Explorer.explore(model, entry.search(), limit());
        Leads leads = Leads.of(model);
        boolean proven = outcome.isProven() && leads.areAllowed();
        row(
                setting.label(),
                setting.ranks(),
                setting.chunks(),
                setting.calls(),
                entry.search().name().toLowerCase(Locale.ROOT),
                outcome.states(),
                outcome.transitions(),
                outcome.depth(),
                describe(leads),
                (System.nanoTime() - start) / 1_000_000,
                outcome.isProven() && !proven ? "too far ahead" : outcome.verdict().label());
        if (!outcome.isProven()) {
            tell(outcome);
        }
        return proven;
    }

    /** Of start words and signals; a dash where nobody awaits any. */
    private static String describe(Leads leads) {
        StringBuilder text = new StringBuilder();
        for (Word.Role role : Word.Role.values()) {
            if (role != Word.Role.LOCAL) {
                int lead = leads.of(role);
                text.append(text.isEmpty() ? "" : " ").append(lead < 0 ? "-" : lead);
            }
        }
        return text.toString();
    }

    private boolean survivesFaults() {
        boolean fine = true;
        out.println();
        for (Setting setting : Catalogue.forFaults()) {
            LostSignals lost = LostSignals.of(setting, limit());
            Model doubled = Protocol.model(setting, Mutant.NONE, Faults.twice());
            boolean harmless = Explorer.explore(doubled, Search.FULL, limit()).isProven();
            ForgottenWaits forgotten = ForgottenWaits.of(setting, limit());
            fine &= lost.wrong() == 0 && harmless && forgotten.isFine();
            out.printf(
                    "%s: each of %d signals lost once: %d made good by a later one, %d leave"
                            + " a wait for that word, %d wrong; all doubled: %s; each of %d waits"
                            + " forgotten once: %d found, %d implied by others%n",
                    setting,
                    lost.signals(),
                    lost.madeGood(),
                    lost.awaited(),
                    lost.wrong(),
                    harmless ? "no harm" : "WRONG",
                    forgotten.waits(),
                    forgotten.found(),
                    forgotten.waits() - forgotten.found());
        }
        return fine;
    }

    private boolean findsMutants() {
        boolean fine = true;
        for (Mutant mutant : Mutant.values()) {
            List<Setting> settings = mutant == Mutant.NONE ? List.of() : Catalogue.against(mutant);
            for (Setting setting : settings) {
                fine &= finds(mutant, setting);
            }
        }
        return fine;
    }

    private boolean finds(Mutant mutant, Setting setting) {
        Model model = Protocol.model(setting, mutant, Faults.none());
        SearchResult outcome = Explorer.explore(model, Search.FULL, limit());
        boolean found = outcome.verdict() == SearchResult.Verdict.WRONG_READ;
        out.println();
        out.printf(
                "mutant %s (%s; %s): %s%n",
                mutant.label(),
                mutant.meaning(),
                setting,
                found ? "found after " + outcome.states() + " states" : "NOT FOUND");
        tell(outcome);
        return found;
    }

    /** What is wrong and what led to it. */
    private void tell(SearchResult outcome) {
        List<String> trace = outcome.trace();
        int left = Math.max(0, trace.size() - LINES_OF_TRACE);
        if (left > 0) {
            out.printf("    %d steps, then%n", left);
        }
        trace.subList(left, trace.size()).forEach(step -> out.println("    " + step));
        out.println("    -> " + outcome.problem());
    }
}
