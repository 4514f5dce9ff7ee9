package dev.weft.cli.console;

import java.io.PrintStream;

/**
 * One line on a terminal that shows how far long work has come; silent anywhere else. Very short
 * work draws nothing. Any thread may advance it.
 */
public class Progress {

    private static final long QUIET_NS = 300_000_000;
    private static final long REDRAW_NS = 100_000_000;

    private final PrintStream terminal;
    private String what = "starting";
    private long total;
    private long beganNs;
    private long drawnNs;

    /**
     * @param shown whether there is a terminal and the user wants output
     */
    public Progress(boolean shown) {
        this.terminal = shown ? System.err : null;
    }

    /** The launcher knows whether standard output and error are a terminal. */
    public static Progress forTerminal(boolean quiet) {
        return new Progress(!quiet && Boolean.getBoolean("weft.terminal"));
    }

    protected final String what() {
        return what;
    }

    protected final long total() {
        return total;
    }

    public synchronized void begin(String what, long total) {
        this.what = what;
        this.total = total;
        this.beganNs = System.nanoTime();
        this.drawnNs = 0;
    }

    public synchronized void advance(long done) {
        long now = System.nanoTime();
        if (terminal == null || now - beganNs < QUIET_NS || now - drawnNs < REDRAW_NS) {
            return;
        }
        drawnNs = now;
        long percent = total == 0 ? 100 : Math.min(100, 100 * done / total);
        double leftSeconds =
                done == 0 ? 0 : (now - beganNs) * 1e-9 * Math.max(0, total - done) / done;
        terminal.printf("\r%s: %d%%, about %.0f s left\033[K", what, percent, leftSeconds);
        terminal.flush();
    }

    /** Like {@link #begin} if this is other work, and {@link #advance}. */
    public synchronized void continueWith(String what, long done, long total) {
        if (!what.equals(this.what) || total != this.total) {
            begin(what, total);
        }
        advance(done);
    }

    /** For the thread of a rank; only the first rank's progress is shown. */
    public Progress ofRank(int rank) {
        return rank == 0 ? this : new Progress(false);
    }

    public synchronized void end() {
        if (terminal != null && drawnNs != 0) {
            terminal.print("\r\033[K");
            terminal.flush();
        }
    }
}
