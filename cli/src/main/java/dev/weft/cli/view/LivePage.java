package dev.weft.cli.view;

import dev.weft.cli.console.Console;
import dev.weft.report.PageData;
import dev.weft.report.ShownRun;
import java.io.PrintWriter;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * The page of a running command, for {@code --watch}: progress, what was measured so far, and at
 * the end the report. Pages are made when a browser asks, not by the threads that measure.
 * Thread-safe.
 */
public final class LivePage implements AutoCloseable {

    /** An open page asks about once a second. */
    private static final long READER_NS = TimeUnit.SECONDS.toNanos(5);

    private static final long LOOK_MS = 20;

    private final String title;
    private final PageServer server;
    private long version;
    private PageData.Progress progress = new PageData.Progress("starting", 0, 0, false, null);
    private Once run;
    private PageData.Sweep sweep;

    private LivePage(String title) {
        this.title = title;
        this.server = new PageServer(0, this::edition);
    }

    /** Null if it is not wanted. */
    public static LivePage open(boolean wanted, String title, Console console, PrintWriter err) {
        if (!wanted) {
            return null;
        }
        LivePage page = new LivePage(title);
        String address = "Watch it at " + page.server.address();
        if (console.quiet()) {
            // With --quiet, nothing goes to standard output, but the user needs the address.
            err.println(address);
            err.flush();
        } else {
            console.info(address);
        }
        return page;
    }

    /** Computed only if somebody asks, and then only once. */
    private static final class Once {

        private final Supplier<ShownRun> maker;
        private ShownRun made;

        Once(Supplier<ShownRun> maker) {
            this.maker = maker;
        }

        synchronized ShownRun get() {
            if (made == null) {
                made = maker.get();
            }
            return made;
        }
    }

    private PageServer.Edition edition() {
        Once shown;
        PageData.Progress now;
        PageData.Sweep rows;
        long at;
        synchronized (this) {
            shown = run;
            now = progress;
            rows = sweep;
            at = version;
        }
        // Not under the lock: it is slow, and ranks must not wait for it.
        return new PageServer.Edition(
                at,
                () -> {
                    List<ShownRun> runs = shown == null ? List.of() : List.of(shown.get());
                    return new PageData(title, now, runs, rows);
                });
    }

    public synchronized void progress(String what, long done, long of) {
        progress = new PageData.Progress(what, done, of, false, null);
        version++;
    }

    /** Shows what is known about the run so far. */
    public synchronized void show(Supplier<ShownRun> soFar) {
        run = new Once(soFar);
        version++;
    }

    public synchronized void show(PageData.Sweep soFar) {
        sweep = soFar;
        version++;
    }

    public synchronized void ended(Supplier<ShownRun> shown) {
        show(shown);
        ended((String) null);
    }

    /** Notes that it has ended; {@code failed} is null if all went well. */
    public synchronized void ended(String failed) {
        progress = new PageData.Progress("done", 1, 1, true, failed);
        version++;
    }

    private synchronized long version() {
        return version;
    }

    /** Waits until open pages have the newest version, for some seconds at most. */
    public void awaitReaders() {
        try {
            while (server.hasReader(READER_NS) && server.servedVersion() < version()) {
                TimeUnit.MILLISECONDS.sleep(LOOK_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        synchronized (this) {
            if (!progress.ended()) {
                ended("the command has ended early");
            }
        }
        awaitReaders();
        server.close();
    }
}
