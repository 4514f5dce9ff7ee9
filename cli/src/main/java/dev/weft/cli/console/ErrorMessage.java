package dev.weft.cli.console;

import dev.weft.process.SafeText;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.List;

/** A failure as users see it: one line, safe for a terminal. */
public final class ErrorMessage {

    /** Longer lines are cut: they repeat the content of a file or an option. */
    private static final int MAX_LINE = 900;

    private ErrorMessage() {}

    public static void print(PrintWriter err, List<String> lines) {
        lines.forEach(line -> err.println(SafeText.harmless(line)));
        err.flush();
    }

    /** Exceptions about files name only the file; those about limits, no limit. */
    public static String of(Throwable failure) {
        String text = text(failure);
        String hint = Limits.hint(text);
        return hint.isEmpty() ? text : oneLine(text).strip() + hint;
    }

    private static String text(Throwable failure) {
        if (failure instanceof UncheckedIOException && failure.getMessage() == null) {
            return text(failure.getCause());
        }
        String text = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return switch (failure) {
            case AccessDeniedException e -> e.getFile() + ": no permission";
            case NoSuchFileException e -> e.getFile() + ": no such file or folder";
            case FileAlreadyExistsException e -> e.getFile() + ": exists and is not a folder";
            default -> text;
        };
    }

    public static void print(PrintWriter err, String message) {
        err.println("weft: " + oneLine(message));
        err.flush();
    }

    /** The first line of it, made safe for a terminal. */
    public static String oneLine(String message) {
        String line =
                SafeText.harmless(
                        message.lines().filter(one -> !one.isBlank()).findFirst().orElse("failed"));
        return line.length() <= MAX_LINE ? line : line.substring(0, MAX_LINE - 3) + "...";
    }
}
