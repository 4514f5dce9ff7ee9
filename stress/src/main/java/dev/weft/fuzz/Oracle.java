package dev.weft.fuzz;

import com.sun.management.ThreadMXBean;
import dev.weft.fabric.FabricException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;

/**
 * Judges what a reader makes of an input: it may return, or refuse with one of the exceptions that
 * readers promise and a message of one line, and it takes no more memory than the input can
 * justify. For one thread at a time, that which reads.
 */
final class Oracle {

    /** Objects that a byte of input may become: a list in a list costs about 50 bytes a bracket. */
    private static final long BYTES_PER_BYTE = 64;

    /** Outside the heap: what is mapped is the file itself, in pages. */
    private static final long PAGE_BYTES = 1 << 16;

    private static final int MAX_MESSAGE_CHARS = 1000;
    private static final int TRAIL_FRAMES = 8;

    /** By name, because the command's own is for its package alone. */
    private static final Set<String> REFUSALS =
            Set.of(
                    IllegalArgumentException.class.getName(),
                    "dev.weft.cli.console.UsageException",
                    TypeConversionException.class.getName());

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final boolean watchesMemory;

    /**
     * @param watchesMemory false for the first inputs, which load classes
     */
    Oracle(boolean watchesMemory) {
        this.watchesMemory = watchesMemory;
    }

    Verdict judge(Target target, byte[] input) {
        long before = THREADS.getCurrentThreadAllocatedBytes();
        try {
            long outside = target.reader().read(input);
            long heap = THREADS.getCurrentThreadAllocatedBytes() - before;
            String trail = "accepted " + (64 - Long.numberOfLeadingZeros(outside));
            return new Verdict(true, trail, greed(target, input.length, heap, outside));
        } catch (Exception | Error e) {
            long heap = THREADS.getCurrentThreadAllocatedBytes() - before;
            String problem = isPromised(e) ? wrongMessage(e) : "not a promised refusal";
            if (problem == null) {
                problem = greed(target, input.length, heap, 0);
            }
            return new Verdict(
                    false, trail(e), problem == null ? null : problem + ": " + describe(e));
        }
    }

    private String greed(Target target, long inputBytes, long heapBytes, long outsideBytes) {
        if (outsideBytes > inputBytes + PAGE_BYTES) {
            return outsideBytes + " bytes mapped for an input of " + inputBytes;
        }
        return watchesMemory && heapBytes > BYTES_PER_BYTE * inputBytes + target.freeBytes()
                ? heapBytes + " bytes allocated for an input of " + inputBytes
                : null;
    }

    /** An exception that a subclass stands for, such as NumberFormatException, came unforeseen. */
    private static boolean isPromised(Throwable e) {
        return REFUSALS.contains(e.getClass().getName())
                || e instanceof IOException
                || e instanceof UncheckedIOException
                || e instanceof ParameterException
                || e instanceof FabricException;
    }

    private static String wrongMessage(Throwable e) {
        String message = e.getMessage();
        if (message == null || message.isBlank()) {
            return "no message";
        }
        if (message.chars()
                .anyMatch(c -> Character.isISOControl(c) || c == 0x2028 || c == 0x2029)) {
            return "a message of several lines or with control characters";
        }
        return message.length() > MAX_MESSAGE_CHARS
                ? "a message of " + message.length() + " characters"
                : null;
    }

    /** The exception on one line, whatever its message holds. */
    private static String describe(Throwable e) {
        String text = e.toString().replaceAll("[\\p{Cntrl}\\u0085\\u2028\\u2029]", "?");
        return text.length() > 300 ? text.substring(0, 300) + "..." : text;
    }

    private static String trail(Throwable e) {
        return e.getClass().getName()
                + Stream.of(e.getStackTrace())
                        .filter(frame -> frame.getClassName().startsWith("dev.weft."))
                        .limit(TRAIL_FRAMES)
                        .map(frame -> " " + frame.getFileName() + ":" + frame.getLineNumber())
                        .collect(Collectors.joining());
    }
}
