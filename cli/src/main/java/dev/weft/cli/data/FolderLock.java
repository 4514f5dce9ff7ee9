package dev.weft.cli.data;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.process.Fallback;
import dev.weft.process.PidNamespace;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The lock on a data folder: one command at a time writes there, or several read. The system drops
 * it when its process dies, however that happens; the file that remains locks nobody out. Used by
 * one thread.
 */
public final class FolderLock implements AutoCloseable {

    static final String NAME = ".weft.lock";

    /** The process that holds the lock, its run, and its host. */
    private static final Pattern HOLDER = Pattern.compile("([0-9]{1,18}) ([0-9a-f]{1,16}) (.*)\n");

    private static final int MAX_HOLDER_BYTES = 400;

    /** How often to look for the name of a holder that has just taken the lock. */
    private static final int LOOKS = 25;

    private static final long LOOK_MS = 20;

    /**
     * Folders that this process has locked. Their lock files are not opened again: closing any
     * channel to such a file drops all locks that the process has on it.
     */
    private static final Set<Path> HELD_HERE = new HashSet<>();

    private final Path folder;
    private final long run;

    /** Null while the lock is not taken, or if another rank of the run has it. */
    private FileChannel channel;

    private Path held;

    /** For a command that is the whole run. */
    public FolderLock(Path folder) {
        this(folder, newRun());
    }

    /**
     * @param run the same on all ranks of a run, which do not lock each other out
     */
    public FolderLock(Path folder, long run) {
        this.folder = folder;
        this.run = run;
    }

    /** A number that no other run has. */
    public static long newRun() {
        return new SecureRandom().nextLong();
    }

    /**
     * Creates the folder if necessary and locks it for a command that writes there.
     *
     * @throws UsageException that names the process that holds the lock
     */
    public void takeToWrite() {
        try {
            Files.createDirectories(folder);
            take(false);
        } catch (FileSystemException e) {
            throw new UsageException(
                    "--data-dir " + folder + ": cannot write there: " + ErrorMessage.of(e));
        } catch (IOException e) {
            goOnWithout(e);
        }
    }

    /** Locks an existing folder for a command that only reads; others may read too. */
    public void takeToRead() {
        try {
            take(true);
        } catch (IOException e) {
            goOnWithout(e);
        }
    }

    private static void goOnWithout(IOException reason) {
        Fallback.report(
                "a data folder without a lock",
                ErrorMessage.of(reason) + "; start no other run there meanwhile");
    }

    private void take(boolean shared) throws IOException {
        synchronized (HELD_HERE) {
            Path real = folder.toRealPath();
            if (HELD_HERE.contains(real)) {
                throw refusal("process " + ProcessHandle.current().pid());
            }
            FileChannel opened =
                    FileChannel.open(
                            real.resolve(NAME),
                            StandardOpenOption.CREATE,
                            StandardOpenOption.READ,
                            StandardOpenOption.WRITE,
                            LinkOption.NOFOLLOW_LINKS);
            try {
                FileLock lock = opened.tryLock(0, Long.MAX_VALUE, shared);
                if (lock == null) {
                    refuseUnlessOurs(opened);
                    return;
                }
                if (!isOwn(opened)) {
                    throw new OwnFiles(folder).foreign(NAME);
                }
                tellWho(opened);
                channel = opened;
                held = real;
                HELD_HERE.add(real);
            } finally {
                if (channel == null) {
                    opened.close();
                }
            }
        }
    }

    /** Whether Weft wrote the file; it is empty if a command was killed before it could. */
    private static boolean isOwn(FileChannel file) throws IOException {
        // Read once: another reader of the folder may be writing its own line.
        String text = read(file);
        return text.isEmpty() || file.size() <= MAX_HOLDER_BYTES && HOLDER.matcher(text).matches();
    }

    private void tellWho(FileChannel file) throws IOException {
        String who =
                "%s %s %s\n"
                        .formatted(
                                ProcessHandle.current().pid(),
                                Long.toHexString(run),
                                PidNamespace.host());
        file.truncate(0);
        file.write(ByteBuffer.wrap(who.getBytes(StandardCharsets.UTF_8)), 0);
    }

    private void refuseUnlessOurs(FileChannel file) throws IOException {
        String who = "another process";
        for (int look = 0; look < LOOKS; look++) {
            Matcher holder = HOLDER.matcher(read(file));
            if (holder.matches()) {
                if (holder.group(2).equals(Long.toHexString(run))) {
                    return;
                }
                boolean here = holder.group(3).equals(PidNamespace.host());
                if (!here || ProcessHandle.of(Long.parseLong(holder.group(1))).isPresent()) {
                    who = "process " + holder.group(1) + (here ? "" : " on " + holder.group(3));
                    break;
                }
            }
            RunFailedException.sleep(LOOK_MS);
        }
        throw refusal(who);
    }

    private static String read(FileChannel file) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(MAX_HOLDER_BYTES);
        file.read(bytes, 0);
        return new String(bytes.array(), 0, bytes.position(), StandardCharsets.UTF_8);
    }

    private UsageException refusal(String who) {
        return new UsageException(
                "--data-dir %s: in use by %s: wait for it to end, or name another folder",
                folder, who);
    }

    @Override
    public void close() throws IOException {
        synchronized (HELD_HERE) {
            if (channel != null) {
                HELD_HERE.remove(held);
                channel.close();
                channel = null;
            }
        }
    }
}
