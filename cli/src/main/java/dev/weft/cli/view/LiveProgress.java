package dev.weft.cli.view;

import dev.weft.cli.console.Progress;

/** Progress on the terminal and on a live page. Any thread may advance it. */
public class LiveProgress extends Progress {

    private final Progress terminal;
    private final LivePage page;
    private String what = "starting";
    private long total;

    public LiveProgress(Progress terminal, LivePage page) {
        super(false);
        this.terminal = terminal;
        this.page = page;
    }

    @Override
    public synchronized void begin(String newWhat, long newTotal) {
        what = newWhat;
        total = newTotal;
        terminal.begin(newWhat, newTotal);
        page.progress(newWhat, 0, newTotal);
    }

    @Override
    public synchronized void advance(long done) {
        terminal.advance(done);
        page.progress(what, done, total);
    }

    @Override
    public synchronized void continueWith(String newWhat, long done, long newTotal) {
        what = newWhat;
        total = newTotal;
        terminal.continueWith(newWhat, done, newTotal);
        page.progress(newWhat, done, newTotal);
    }

    @Override
    public void end() {
        terminal.end();
    }
}
