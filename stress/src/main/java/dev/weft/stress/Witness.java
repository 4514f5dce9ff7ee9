package dev.weft.stress;

import java.io.BufferedReader;
import java.io.IOException;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

/**
 * A process in which one rank lives, or under which several do, and what they say ({@link
 * RankMain}). Any thread may ask.
 */
final class Witness implements AutoCloseable {

    /** What one rank has said so far. */
    static final class Words {
        volatile long pid;
        volatile long faultMs;
        volatile long throwsMs;

        /** The words of its end, or null. */
        volatile String end;

        boolean isAlive() {
            return pid > 0 && ProcessHandle.of(pid).filter(ProcessHandle::isAlive).isPresent();
        }
    }

    private static final int OTHER_LINES = 30;

    private final Process process;
    private final Map<Integer, Words> words = new ConcurrentHashMap<>();
    private final Queue<String> others = new ConcurrentLinkedQueue<>();
    private final Thread reader;

    Witness(ProcessBuilder builder) throws IOException {
        process = builder.redirectErrorStream(true).start();
        reader = Thread.ofPlatform().daemon().name("witness-" + process.pid()).start(this::read);
    }

    private void read() {
        try (BufferedReader lines = process.inputReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                // A launcher may put something of its own in front.
                int at = line.indexOf(RankMain.SAYS);
                if (at >= 0) {
                    hear(line.substring(at + RankMain.SAYS.length()));
                } else if (others.size() < OTHER_LINES) {
                    others.add(line);
                }
            }
        } catch (IOException e) {
            others.add("reading failed: " + e.getMessage());
        }
    }

    private void hear(String said) {
        String[] parts = said.split(" ", 3);
        Words of = of(Integer.parseInt(parts[0]));
        switch (parts[1]) {
            case "pid" -> of.pid = Long.parseLong(parts[2]);
            case "fault" -> of.faultMs = Long.parseLong(parts[2]);
            case "throws" -> of.throwsMs = Long.parseLong(parts[2]);
            default -> {
                if (of.throwsMs == 0) {
                    of.throwsMs = System.currentTimeMillis();
                }
                of.end = parts[1] + " " + parts[2];
            }
        }
    }

    Words of(int rank) {
        return words.computeIfAbsent(rank, r -> new Words());
    }

    /** Whether the process is gone and all that it said has been heard. */
    boolean isSilent() {
        return !process.isAlive() && !reader.isAlive();
    }

    long pid() {
        return process.pid();
    }

    /** What else was said: errors of Java or of a launcher. */
    String others() {
        return String.join(" | ", others);
    }

    boolean awaitExit(long ms) {
        try {
            return process.waitFor(ms, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** With all that it has started. */
    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        words.values().stream()
                .filter(w -> w.pid > 0)
                .forEach(w -> ProcessHandle.of(w.pid).ifPresent(Witness::killRank));
        process.destroyForcibly();
    }

    private static void killRank(ProcessHandle rank) {
        // A number may belong to another process by now: ranks are Java like this process.
        if (rank.info().command().equals(ProcessHandle.current().info().command())) {
            rank.destroyForcibly();
        }
    }
}
