package dev.weft.cli.view;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Colours;
import dev.weft.cli.console.Console;
import dev.weft.report.CallSpans;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * A call as a picture of a few lines for the terminal: for each rank, how busy its compute workers
 * and its lanes were over time, and when they waited. Lines are no wider than requested, if that is
 * 40 columns or more.
 */
public final class TimelinePicture {

    private static final int MOST_RANKS = 8;
    private static final int USUAL_WIDTH = 80;
    private static final int LEAST_CELLS = 10;
    private static final int MOST_CELLS = 200;
    private static final int PERCENT_WIDTH = 5;
    private static final int TICK_CELLS = 10;
    private static final String UNIT = " ms";

    /** By how busy a cell is; never the full block, so that lines stay separate. */
    private static final String BLOCKS = "▁▂▃▄▅▆▇";

    private static final String COMPUTE = "compute ";
    private static final String TRANSFER = "transfer";

    private final CallSpans call;
    private final boolean ascii;
    private final Colours colours;
    private final List<CallSpans.RankSpans> ranks;
    private final int labelWidth;
    private final int cells;

    /**
     * @param width columns of the terminal
     * @param ascii whether to avoid Unicode's blocks
     */
    TimelinePicture(CallSpans call, int width, boolean ascii, Colours colours) {
        this.call = call;
        this.ascii = ascii;
        this.colours = colours;
        this.ranks = call.ranks().subList(0, Math.min(MOST_RANKS, call.ranks().size()));
        this.labelWidth = label(ranks.isEmpty() ? 0 : ranks.getLast().rank(), COMPUTE).length();
        int room = width - labelWidth - PERCENT_WIDTH;
        this.cells = Math.clamp(room, LEAST_CELLS, MOST_CELLS);
    }

    /**
     * Draws a call to fit this process's terminal and its colours; nothing if the command is quiet
     * or there are no spans.
     *
     * @param what the call is, in words
     */
    public static void draw(Console console, String what, CallSpans call, boolean ascii) {
        if (console.quiet() || call.size() == 0) {
            return;
        }
        console.line("Timeline:", text("%s, %.3f ms", what, call.endNs() / 1e6));
        forTerminal(call, ascii).lines().forEach(console::draw);
    }

    private static TimelinePicture forTerminal(CallSpans call, boolean ascii) {
        return new TimelinePicture(
                call,
                width(System.getenv()),
                ascii
                        || !canShow(
                                Charset.forName(System.getProperty("stdout.encoding", "US-ASCII"))),
                Colours.ofProcess());
    }

    /** Columns of the terminal, as far as the environment says. */
    public static int width(Map<String, String> environment) {
        String columns = environment.getOrDefault("COLUMNS", "");
        return columns.matches("[1-9][0-9]{0,3}") ? Integer.parseInt(columns) : USUAL_WIDTH;
    }

    /** Whether the blocks can be written in that encoding. */
    static boolean canShow(Charset charset) {
        return charset.canEncode() && charset.newEncoder().canEncode(BLOCKS + "░╵");
    }

    /** Empty if the call has no spans. */
    public List<String> lines() {
        if (call.size() == 0 || call.endNs() == 0) {
            return List.of();
        }
        List<BusyCells> compute = cells(true);
        List<BusyCells> transfers = cells(false);
        boolean computes = !compute.stream().allMatch(BusyCells::isEmpty);
        boolean transfersAny = !transfers.stream().allMatch(BusyCells::isEmpty);
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < ranks.size(); i++) {
            String label = label(ranks.get(i).rank(), computes ? COMPUTE : TRANSFER);
            lines.add(line(label, computes ? compute.get(i) : transfers.get(i), computes));
            if (computes && transfersAny) {
                String indent = " ".repeat(labelWidth - TRANSFER.length() - 1);
                lines.add(line(indent + TRANSFER + " ", transfers.get(i), false));
            }
        }
        int more = call.members() - ranks.size();
        if (more > 0) {
            lines.add("  ... and " + more + " more rank" + (more == 1 ? "" : "s"));
        }
        lines.add(axis());
        lines.add(legend(computes, transfersAny));
        return lines;
    }

    private List<BusyCells> cells(boolean compute) {
        return ranks.stream().map(rank -> new BusyCells(call, rank, compute, cells)).toList();
    }

    private String label(int rank, String kind) {
        int digits = Integer.toString(ranks.isEmpty() ? 0 : ranks.getLast().rank()).length();
        return text("  rank %" + digits + "d  %s ", rank, kind);
    }

    private String line(String label, BusyCells busy, boolean compute) {
        StringBuilder line = new StringBuilder(label);
        for (int cell = 0; cell < cells; cell++) {
            boolean waits = busy.waitShare(cell) > busy.busyShare(cell);
            String mark = waits ? waitMark() : busyMark(busy.busyShare(cell), compute);
            line.append(waits ? colours.faint(mark) : colours.ofSource(busy.source(cell), mark));
        }
        return line.append(text("%4.0f%%", 100 * busy.busyShare())).toString();
    }

    private String waitMark() {
        return ascii ? "." : "░";
    }

    private String busyMark(double share, boolean compute) {
        if (share <= 0) {
            return " ";
        }
        if (ascii) {
            return compute ? "#" : "=";
        }
        int height = Math.clamp(Math.round(BLOCKS.length() * share), 1, BLOCKS.length());
        return BLOCKS.substring(height - 1, height);
    }

    /** Marks at round numbers of milliseconds, the first cell's mark at 0. */
    private String axis() {
        double ms = call.endNs() / 1e6;
        double step = roundStep(ms * TICK_CELLS / cells);
        int decimals = Math.max(0, (int) Math.ceil(-Math.log10(step) - 1e-9));
        StringBuilder axis = new StringBuilder();
        for (int tick = 0; tick * step < ms; tick++) {
            int column = (int) (tick * step / ms * cells);
            String mark = (ascii ? "|" : "╵") + text("%." + decimals + "f", tick * step);
            if (column + mark.length() + UNIT.length() <= cells) {
                axis.append(" ".repeat(Math.max(0, column - axis.length()))).append(mark);
            }
        }
        axis.append(UNIT);
        return " ".repeat(labelWidth) + axis + " ".repeat(cells - axis.length()) + " busy";
    }

    /** The smallest of 1, 2, 5, 10, 20 and so on, and their tenths, from {@code least} on. */
    private static double roundStep(double least) {
        double power = Math.pow(10, Math.floor(Math.log10(least)));
        return power
                * IntStream.of(1, 2, 5, 10)
                        .filter(factor -> factor * power >= least * (1 - 1e-9))
                        .findFirst()
                        .orElse(10);
    }

    private String legend(boolean computes, boolean transfers) {
        String busy =
                ascii
                        ? (computes ? "# compute  " : "") + (transfers ? "= transfer  " : "")
                        : "▇ busy  ▄ half busy  ";
        String legend = "  " + busy + colours.faint(waitMark()) + " waiting";
        return colours.shown() ? legend + sources(busy.length() + 11) : legend;
    }

    /** The colours of the sources, as many as fit behind what the line already has. */
    private String sources(int taken) {
        String head = "  rows of rank";
        int room = labelWidth + cells + PERCENT_WIDTH - taken - head.length();
        int count = Math.clamp((room - 4) / 3, 0, Math.min(Colours.SOURCES, call.worldSize()));
        StringBuilder sources = new StringBuilder(count == 0 ? "" : head);
        for (int source = 0; source < count; source++) {
            sources.append(' ').append(colours.ofSource(source, (ascii ? "#" : "▇") + source));
        }
        return sources + (count > 0 && count < call.worldSize() ? " ..." : "");
    }
}
