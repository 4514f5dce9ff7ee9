package dev.weft.cli;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.ExitCode;
import java.io.BufferedWriter;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.io.Writer;
import picocli.CommandLine;

/**
 * Standard output of a command. Printed text may get lost, on a full disk for example, and {@link
 * PrintWriter} does not report it: this keeps the reason, and a command whose output was lost ends
 * with an error. For one command; any thread may print.
 */
public final class StandardOutput {

    /** What shells report for a program that a closed pipe has ended (128 + SIGPIPE). */
    private static final int PIPE_CLOSED = 141;

    private final FirstFailure kept;
    private final PrintWriter writer;

    private StandardOutput(Writer out) {
        kept = new FirstFailure(out);
        writer = new PrintWriter(new BufferedWriter(kept));
    }

    /** Remembers why the first write failed; for a {@link BufferedWriter}, which writes arrays. */
    private static final class FirstFailure extends FilterWriter {

        private volatile IOException failure;

        FirstFailure(Writer out) {
            super(out);
        }

        @Override
        public void write(char[] text, int from, int count) throws IOException {
            keep(() -> out.write(text, from, count));
        }

        @Override
        public void flush() throws IOException {
            keep(out::flush);
        }

        private interface Step {
            void run() throws IOException;
        }

        private void keep(Step step) throws IOException {
            try {
                step.run();
            } catch (IOException e) {
                if (failure == null) {
                    failure = e;
                }
                throw e;
            }
        }
    }

    /**
     * Runs a command that prints to this process's standard output.
     *
     * @return the exit code: 1 if output was lost though the command itself succeeded
     */
    public static int execute(CommandLine command, String... arguments) {
        // Not System.out, which loses the reason. It is never closed: others may print after this.
        Writer out =
                new OutputStreamWriter(
                        new FileOutputStream(FileDescriptor.out), System.out.charset());
        StandardOutput output = new StandardOutput(out);
        command.setOut(output.writer);
        int code = Main.execute(command, arguments);
        return code == 0 ? output.end(command.getErr()) : code;
    }

    private int end(PrintWriter err) {
        writer.flush();
        IOException failure = kept.failure;
        if (failure == null) {
            return 0;
        }
        // A reader of only the first lines, such as head, wants no message; and the JDK has no
        // other sign than the text of the error.
        if ("Broken pipe".equals(failure.getMessage())) {
            return PIPE_CLOSED;
        }
        ErrorMessage.print(err, "cannot write to standard output: " + failure.getMessage());
        return ExitCode.FAILED;
    }
}
