package dev.weft.cli.view;

import dev.weft.cli.console.UsageException;
import dev.weft.report.PageData;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;

/** The page of some records; there is a new edition whenever they have changed. Thread-safe. */
final class RecordWatch {

    private final List<Path> records;
    private String seen;
    private long version;
    private PageData page;

    /** Records that may still be missing or change. */
    RecordWatch(List<Path> records) {
        this.records = records;
    }

    synchronized PageServer.Edition edition() {
        String now = state();
        if (!now.equals(seen)) {
            page = livePage();
            version++;
            seen = now;
        }
        PageData shown = page;
        return new PageServer.Edition(version, () -> shown);
    }

    private PageData livePage() {
        long missing = records.stream().filter(file -> !Files.isRegularFile(file)).count();
        if (missing > 0) {
            int all = records.size();
            return empty("waiting for records", all - missing, all, null);
        }
        PageData.Progress shown = new PageData.Progress("the newest version", 0, 0, false, null);
        try {
            return ReportCommand.page(records).live(shown);
        } catch (UsageException e) {
            return empty("reading", 0, 1, e.getMessage());
        }
    }

    private static PageData empty(String what, long done, long of, String failed) {
        PageData.Progress progress = new PageData.Progress(what, done, of, false, failed);
        return new PageData("Weft", progress, List.of(), null);
    }

    /** Changes when a file does: its time, its size, and which file it is. */
    private String state() {
        StringBuilder state = new StringBuilder();
        for (Path file : records) {
            try {
                BasicFileAttributes now = Files.readAttributes(file, BasicFileAttributes.class);
                state.append(
                        "%s %s %s\n".formatted(now.lastModifiedTime(), now.size(), now.fileKey()));
            } catch (IOException e) {
                state.append("not there\n");
            }
        }
        return state.toString();
    }
}
