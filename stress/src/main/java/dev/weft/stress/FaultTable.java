package dev.weft.stress;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The table of faults, as Markdown, row by row as they happen. */
final class FaultTable {

    private final PrintWriter out;
    private boolean begun;
    private int rows;
    private int problems;

    FaultTable(PrintWriter out) {
        this.out = out;
    }

    void line(String text) {
        out.println(text);
        out.flush();
    }

    void row(Ending ending) {
        Case run = ending.run();
        row(
                run.fault().type().label(),
                run.fault().type() == Fault.Type.NONE ? "" : run.fault().phase().label(),
                run.launcher().label(),
                ending.describe(),
                ending.errorMs(),
                "faults --case \"" + run.words() + "\"",
                String.join("; ", problems(ending)));
    }

    /** A fault of the table that never came is a row that says nothing. */
    private static List<String> problems(Ending ending) {
        List<String> problems = new ArrayList<>(ending.problems());
        if (!ending.occurred() && ending.run().fault().type() != Fault.Type.NONE) {
            problems.add("the fault did not happen");
        }
        return problems;
    }

    /**
     * @param ms until the last error, or -1 where there was none
     * @param problem what is not as promised, or empty
     */
    void row(
            String fault,
            String phase,
            String fabric,
            String what,
            long ms,
            String replay,
            String problem) {
        if (!begun) {
            begun = true;
            line(
                    "| fault | phase | fabric | what happened | ms to the last error | replay: ./weft |");
            line("|---|---|---|---|---|---|");
        }
        rows++;
        problems += problem.isEmpty() ? 0 : 1;
        line(
                "| "
                        + String.join(
                                " | ",
                                fault,
                                phase,
                                fabric,
                                problem.isEmpty() ? what : what + " **" + problem + "**",
                                ms < 0 ? "" : Long.toString(ms),
                                "`" + replay + "`")
                        + " |");
    }

    /** A row of the command itself. */
    void command(
            String fault,
            String phase,
            String launcher,
            String what,
            long tookNs,
            List<String> problems) {
        row(
                fault,
                phase,
                "command, " + launcher,
                what.replace("|", "/"),
                TimeUnit.NANOSECONDS.toMillis(tookNs),
                "faults --launcher command",
                String.join("; ", problems).replace("\n", " / "));
    }

    int problems() {
        return problems;
    }

    void end() {
        line("");
        line(rows + " cases, " + problems + " not as promised");
    }
}
