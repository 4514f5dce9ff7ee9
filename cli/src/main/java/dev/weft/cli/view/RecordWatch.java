package dev.weft.cli.view;

import dev.weft.cli.console.UsageException;
import dev.weft.report.PageData;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;

/** The page of some records; a new edition of it whenever they have changed. Thread safe. */
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
            PageData.Progress waiting =
                    new PageData.Progress(
                            "waiting for records",
                            records.size() - missing,
                            records.size(),
                            false,
                            null);
            return new PageData("Weft", waiting, List.of(), null);
        }
        PageData.Progress shown = new PageData.Progress("the newest version", 0, 0, false, null);
        try {
            return ReportCommand.page(records).live(shown);
        } catch (UsageException e) {
            PageData.Progress wrong = new PageData.Progress("reading", 0, 1, false, e.getMessage());
            return new PageData("Weft", wrong, List.of(), null);
        }
    }

    /** Changes when a file does: when it was written, its size and which file it is. */
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
