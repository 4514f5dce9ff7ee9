package dev.weft.fabric.memory;

import dev.weft.fabric.FabricException;
import dev.weft.files.PrivateFiles;
import dev.weft.process.WaitTime;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * The worlds of a starter that starts ranks again, one after the other: both ends of the agreement
 * on the next one. A rank says that it is ready for it, and the starter, once all are, creates a
 * folder for it within its own and answers each rank. A rank that has just been started does the
 * same as one that has lost its world, so that ranks meet only when all of them run. The starter's
 * end is used by one thread.
 *
 * <p>Files appear whole, and each has one writer: {@code rank-<r>.ready} the rank, {@code
 * rank-<r>.next} the starter, which removes the former before it writes the latter. The system
 * orders them, so no memory is shared. While the starter waits for a rank, it touches {@code
 * renewals}.
 */
public final class Renewals {

    /** In the folder of a starter that starts ranks again. */
    private static final String MARK = "renewals";

    /** Before the reason in an answer that names no world. */
    private static final String REFUSED = "no: ";

    private static final int MOST_BYTES = 4096;
    private static final long POLL_NS = 2_000_000;

    /** After the deadline: the time that a rank has to end or to get ready. */
    public static final Duration GRACE = Duration.ofSeconds(5);

    /**
     * As {@link #GRACE} for a new process that others wait for, unless the deadline and grace are
     * longer.
     */
    public static final Duration START = Duration.ofMinutes(5);

    private final ShmJob job;
    private final int ranks;
    private int worlds;

    /** Ranks that find the job agree on their worlds from now on. */
    public Renewals(ShmJob job, int ranks) throws IOException {
        this.job = job;
        this.ranks = ranks;
        PrivateFiles.create(job.folder().resolve(MARK)).close();
    }

    private static Path readyFile(Path folder, int rank) {
        return folder.resolve("rank-" + rank + ".ready");
    }

    private static Path answerFile(Path folder, int rank) {
        return folder.resolve("rank-" + rank + ".next");
    }

    /** Whether the rank waits for the next world, or did when its process ended. */
    public boolean isReady(int rank) {
        return Files.exists(readyFile(job.folder(), rank), LinkOption.NOFOLLOW_LINKS);
    }

    /** How many worlds there have been. */
    public int count() {
        return worlds;
    }

    public int ranks() {
        return ranks;
    }

    /** Has ranks that are ready wait on: the starter waits for the others, too. */
    public void showWaiting() throws IOException {
        Files.setLastModifiedTime(job.folder().resolve(MARK), FileTime.from(Instant.now()));
    }

    /** Forgets what the rank's process said, which has ended. */
    public void forget(int rank) throws IOException {
        Files.deleteIfExists(readyFile(job.folder(), rank));
        Files.deleteIfExists(answerFile(job.folder(), rank));
    }

    /**
     * Announces the next world to all ranks, which are ready, and removes what the last one left.
     */
    public void begin() throws IOException {
        if (worlds > 0) {
            ShmJob.remove(job.world(worlds - 1));
        }
        job.meetIn(PrivateFiles.folder(job.world(worlds)));
        for (int rank = 0; rank < ranks; rank++) {
            answer(rank, job.world(worlds).getFileName().toString());
        }
        worlds++;
    }

    /** Tells a rank that is ready why there is no next world. */
    public void refuse(int rank, String reason) throws IOException {
        answer(rank, REFUSED + reason);
    }

    private void answer(int rank, String answer) throws IOException {
        // First: a rank that has its answer may soon be ready for the world after.
        Files.deleteIfExists(readyFile(job.folder(), rank));
        Path file = answerFile(job.folder(), rank);
        Path whole = file.resolveSibling(file.getFileName() + ".new");
        // Not as a temporary file: those are refused once this process is told to end, which is
        // just
        // when ranks have to hear why nobody meets them. The folder is removed as a whole.
        Files.deleteIfExists(whole);
        try (FileChannel channel = PrivateFiles.create(whole)) {
            ByteBuffer bytes = ByteBuffer.wrap(answer.getBytes(StandardCharsets.UTF_8));
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        }
        Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE);
    }

    /** Whether the starter of this folder starts ranks again. */
    static boolean areIn(Path folder) {
        return Files.exists(folder.resolve(MARK), LinkOption.NOFOLLOW_LINKS);
    }

    /** Joins the next world, or the one after if a rank is lost while they meet. */
    static ShmFabric join(Path folder, int rank, int ranks, RunToken token, Duration deadline) {
        while (true) {
            try {
                Path world = next(PrivateFiles.existing(folder), rank, deadline);
                return Rendezvous.join(world, rank, ranks, token, deadline);
            } catch (FabricException e) {
                // The starter counts worlds, so this ends.
                System.getLogger("dev.weft").log(Level.DEBUG, "ranks meet again: {0}", e);
            } catch (NoSuchFileException e) {
                throw StarterWatch.gone(folder);
            } catch (IOException e) {
                throw new UncheckedIOException(
                        "rank %s cannot join in %s: %s".formatted(rank, folder, e.getMessage()), e);
            }
        }
    }

    private static Path next(Path folder, int rank, Duration deadline) throws IOException {
        Path answer = answerFile(folder, rank);
        try (StarterWatch starter = new StarterWatch(folder)) {
            try {
                starter.requireStarter();
                // Left by a wait that was given up.
                Files.deleteIfExists(answer);
                sayReady(folder, rank);
                await(answer, starter, deadline);
            } catch (IOException | IllegalStateException | UncheckedIOException e) {
                Files.deleteIfExists(readyFile(folder, rank));
                if (e instanceof IllegalStateException && starter.isGone()) {
                    ShmJob.removeIfLeft(folder);
                }
                throw e;
            }
        }
        String text = new String(PrivateFiles.read(answer, MOST_BYTES), StandardCharsets.UTF_8);
        Files.delete(answer);
        // The starter has removed it before it answered; one that came meanwhile is this rank's,
        // too.
        Files.deleteIfExists(readyFile(folder, rank));
        if (text.startsWith(REFUSED)) {
            throw new IllegalStateException(
                    "the ranks do not meet again: " + text.substring(REFUSED.length()));
        }
        return folder.resolve(text);
    }

    private static void sayReady(Path folder, int rank) throws IOException {
        Path ready = readyFile(folder, rank);
        if (Files.exists(ready, LinkOption.NOFOLLOW_LINKS)) {
            throw new IllegalArgumentException(
                    "rank " + rank + " is taken by another process in " + folder);
        }
        // Not created in place: the starter may remove it before its mode is set.
        PrivateFiles.write(ready, new byte[0]);
    }

    /** Not a park, which an interrupt would end at once, again and again. */
    private static void pause() {
        new CompletableFuture<Void>().completeOnTimeout(null, POLL_NS, TimeUnit.NANOSECONDS).join();
    }

    /** Waits until the starter answers, or shows no sign of waiting itself for some time. */
    private static void await(Path answer, StarterWatch starter, Duration deadline)
            throws IOException {
        Path mark = answer.resolveSibling(MARK);
        Duration most = deadline.plus(GRACE);
        FileTime sign = null;
        long lookedNs = System.nanoTime();
        long waitedNs = 0;
        while (!Files.exists(answer, LinkOption.NOFOLLOW_LINKS)) {
            starter.requireStarter();
            FileTime latest = Files.getLastModifiedTime(mark);
            long now = System.nanoTime();
            waitedNs = latest.equals(sign) ? waitedNs + WaitTime.counted(lookedNs, now) : 0;
            lookedNs = now;
            sign = latest;
            if (waitedNs > WaitTime.nanoseconds(most)) {
                throw new IllegalStateException(
                        "the command that started this rank has not answered for %s ms"
                                .formatted(most.toMillis()));
            }
            pause();
        }
    }
}
