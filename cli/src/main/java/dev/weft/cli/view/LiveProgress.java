package dev.weft.cli.view;

import dev.weft.cli.console.Progress;

/** Progress on the terminal and on a live page. Any thread may advance it. */
public class LiveProgress extends Progress {

    private final Progress terminal;
    private final LivePage page;

    public LiveProgress(Progress terminal, LivePage page) {
        super(false);
        this.terminal = terminal;
        this.page = page;
    }

    @Override
    public synchronized void begin(String what, long total) {
        super.begin(what, total);
        terminal.begin(what, total);
        page.progress(what, 0, total);
    }

    @Override
    public synchronized void advance(long done) {
        terminal.advance(done);
        page.progress(what(), done, total());
    }

    @Override
    public void end() {
        terminal.end();
    }
}
