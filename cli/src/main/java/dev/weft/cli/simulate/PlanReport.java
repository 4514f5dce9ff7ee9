package dev.weft.cli.simulate;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.cli.console.Version;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.simulate.PlanAnswer.Choice;
import dev.weft.cli.simulate.PlanAnswer.Gain;
import dev.weft.cli.simulate.PlanAnswer.Upgrade;
import dev.weft.json.RecordJson;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.search.Sums;
import dev.weft.sim.Machine;
import java.io.IOException;
import java.util.List;

/**
 * A plan in words and as JSON of docs/sweep-record.md.
 *
 * @param nameOrFile the user's name for the machine
 * @param plans the plans of all ranks, to be printed in full; null if not requested
 */
record PlanReport(
        String nameOrFile,
        long m,
        long k,
        long n,
        boolean columnSharded,
        PlanAnswer answer,
        Dump plans,
        String experts) {

    /**
     * @param json the field {@code plan} of the record
     */
    record Dump(List<String> lines, Object json) {}

    static final String SCHEMA = "weft.plan/1";

    void print(Console console) {
        PlanSearch search = answer.best().search();
        Problem problem = search.problem();
        Machine machine = search.machine();
        console.info("Simulated on " + machine.name() + ": " + machine.description());
        console.info(
                "A [%d, %d] %s, B [%d, %d] %s, C %s%s",
                m,
                k,
                problem.aType().label(),
                k,
                n,
                experts == null ? rhs() : "of each expert",
                problem.outType().label(),
                sums() == null ? "" : " summed in order " + sums().order().label());
        if (experts != null) {
            console.info(experts);
        }
        answer.refused().forEach(reason -> console.info("Left out: " + reason));
        TextTable table =
                TextTable.of(
                        "ranks|algorithm|chunks|chunk rows|ms|unoverlapped ms|speedup|of limit"
                                + "|multiplying");
        answer.choices().forEach(choice -> add(table, choice));
        table.lines().forEach(console::print);
        console.print("");
        fastest(console);
        console.print(
                "Overlap stops paying (is under 3% faster than "
                        + (sums() == null ? "gathering first" : "summing after the product")
                        + "):");
        console.print("  by rows:  " + byRows());
        console.print("  by links: " + byLinks());
        console.print("If one of these were doubled:");
        for (Upgrade upgrade : answer.upgrades()) {
            console.print(
                    "  %-15s %.3f ms, %.2fx",
                    upgrade.what() + ":", upgrade.predictedUs() / 1e3, upgrade.speedup());
        }
        if (plans != null) {
            console.print("");
            plans.lines().forEach(console::print);
        }
    }

    private static void add(TextTable table, Choice choice) {
        Candidate candidate = choice.cheapest();
        table.row(
                Integer.toString(choice.ranks()),
                candidate.algorithm().label(),
                Integer.toString(candidate.chunksPerSource()),
                Long.toString(choice.search().chunkRows(candidate)),
                text("%.3f", candidate.predictedNs() / 1e6),
                text("%.3f", choice.unoverlappedNs() / 1e6),
                text("%.2fx", choice.speedup()),
                text("%.1f%%", 100 * choice.limitFraction()),
                text("%.1f%%", 100 * choice.efficiency()));
    }

    private void fastest(Console console) {
        Choice best = answer.best();
        Candidate candidate = best.cheapest();
        console.print(
                "Fastest: %d ranks, %s, %d chunks of %d rows %s each: %.3f ms, of which"
                        + " ranks multiply %.1f%%",
                best.ranks(),
                candidate.algorithm().label(),
                candidate.chunksPerSource(),
                best.search().chunkRows(candidate),
                sums() == null ? "from" : "for",
                candidate.predictedNs() / 1e6,
                100 * best.efficiency());
        if (experts != null) {
            return;
        }
        if (sums() == null && !columnSharded && answer.choices().size() > 1) {
            console.print(
                    "  every rank multiplies by all of B: more ranks do more work, not the same"
                            + " sooner; see --rhs column-sharded");
        }
        console.print("  " + command(best));
    }

    private String command(Choice best) {
        Problem problem = best.search().problem();
        Candidate candidate = best.cheapest();
        // Among the cuts that are tried, only the Ascend example's rule cuts columns.
        boolean ascend = candidate.cut().chunkCols() > 0;
        return "./weft run -r sim -v %s%s --dtype %s --out-dtype %s %s --algorithm %s%s"
                .formatted(
                        nameOrFile,
                        text(" -n %d --gm %d --gk %d --gn %d", best.ranks(), m, k, n),
                        problem.aType().label(),
                        problem.outType().label(),
                        sums() == null
                                ? "--rhs " + rhs()
                                : "--op " + op() + " --order " + sums().order().label(),
                        candidate.algorithm().label(),
                        ascend
                                ? " --chunk-rule ascend"
                                : " --chunk-rows " + best.search().chunkRows(candidate));
    }

    private String byRows() {
        List<Gain> gains = answer.byRows();
        Gain fewest = gains.getFirst();
        Gain most = gains.getLast();
        if (!most.pays()) {
            return "at every M from " + rows(fewest) + " to " + rows(most);
        }
        if (fewest.pays()) {
            return "nowhere: at M = " + rows(fewest) + " it still pays";
        }
        int paying = 0;
        while (!gains.get(paying).pays()) {
            paying++;
        }
        return "at M = %s; pays from %s on"
                .formatted(rows(gains.get(paying - 1)), rows(gains.get(paying)));
    }

    private static String rows(Gain gain) {
        return text("%.0f", gain.at()) + percent(gain);
    }

    private String byLinks() {
        Gain slowest = answer.byLinks().getFirst();
        Gain fastest = answer.byLinks().getLast();
        if (answer.byLinks().stream().noneMatch(Gain::pays)) {
            return "at any speed from " + times(slowest) + " to " + times(fastest);
        }
        return (slowest.pays() ? "pays down to " : "with links at ")
                + times(slowest)
                + (fastest.pays() ? ", pays up to " : " and at ")
                + times(fastest);
    }

    private static String times(Gain gain) {
        double factor = gain.at();
        return (factor < 1 ? text("1/%.0fx", 1 / factor) : text("%.0fx", factor)) + percent(gain);
    }

    private static String percent(Gain gain) {
        return text(" (%+.1f%%)", 100 * (gain.speedup() - 1));
    }

    private String rhs() {
        return SimRules.rhs(sums() != null, columnSharded);
    }

    /** Null if A is gathered. */
    private Sums sums() {
        return answer.best().search().problem().sums();
    }

    private String op() {
        if (sums() == null) {
            return ProblemSpec.GATHER;
        }
        return sums().all() ? ProblemSpec.ALL : ProblemSpec.SCATTER;
    }

    void writeJson(JsonGenerator json) throws IOException {
        PlanSearch search = answer.best().search();
        Problem problem = search.problem();
        json.writeStringField("schema", SCHEMA);
        json.writeStringField("weft", Version.number());
        json.writeStringField("machine", search.machine().name());
        json.writeNumberField("m", m);
        json.writeNumberField("k", k);
        json.writeNumberField("n", n);
        json.writeStringField("aDtype", problem.aType().label());
        json.writeStringField("outDtype", problem.outType().label());
        json.writeStringField("rhs", rhs());
        json.writeStringField("op", op());
        if (experts != null) {
            json.writeStringField("experts", experts);
        }
        if (sums() != null) {
            json.writeStringField("order", sums().order().label());
        }
        json.writeObjectFieldStart("best");
        choice(json, answer.best());
        json.writeEndObject();
        json.writeArrayFieldStart("choices");
        for (Choice choice : answer.choices()) {
            json.writeStartObject();
            choice(json, choice);
            json.writeEndObject();
        }
        json.writeEndArray();
        RecordJson.field(json, "refused", answer.refused());
        gains(json, "overlapByRows", "m", answer.byRows());
        gains(json, "overlapByLinks", "linkFactor", answer.byLinks());
        RecordJson.field(json, "twice", answer.upgrades());
        if (plans != null) {
            RecordJson.field(json, "plan", plans.json());
        }
    }

    private static void choice(JsonGenerator json, Choice choice) throws IOException {
        Candidate candidate = choice.cheapest();
        json.writeNumberField("ranks", choice.ranks());
        json.writeStringField("algorithm", candidate.algorithm().label());
        json.writeNumberField("chunks", candidate.chunksPerSource());
        json.writeNumberField("chunkRows", choice.search().chunkRows(candidate));
        json.writeNumberField("lanes", choice.search().lanesUsed(candidate));
        json.writeNumberField("predictedUs", candidate.predictedNs() / 1e3);
        json.writeNumberField("unoverlappedUs", choice.unoverlappedNs() / 1e3);
        json.writeNumberField("speedup", choice.speedup());
        json.writeNumberField("limitFraction", choice.limitFraction());
        json.writeNumberField("efficiency", choice.efficiency());
    }

    private static void gains(JsonGenerator json, String field, String at, List<Gain> gains)
            throws IOException {
        json.writeArrayFieldStart(field);
        for (Gain gain : gains) {
            json.writeStartObject();
            json.writeNumberField(at, gain.at());
            json.writeNumberField("speedup", gain.speedup());
            json.writeEndObject();
        }
        json.writeEndArray();
    }
}
