package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** One command at a time writes into a data folder. */
class FolderLockIT {

    private static final String SMALL = "-n 2 --gm 24 --gk 32 --gn 16";

    @TempDir private Path folder;

    private ChildProcess holder;

    private Path data() {
        return folder.resolve("out");
    }

    /** Another process that holds the lock, as {@link #main} does. */
    private void lockElsewhere(String kind, long run) throws IOException {
        holder =
                ChildProcess.java(
                                folder,
                                FolderLockIT.class.getName(),
                                List.of(data().toString(), kind, Long.toString(run)))
                        .to(ProcessBuilder.Redirect.PIPE)
                        .start();
        assertEquals(
                '+', holder.process().getInputStream().read(), "the other process has the lock");
    }

    /** Holds a folder's lock until its input ends. */
    public static void main(String[] arguments) throws IOException {
        try (FolderLock lock =
                new FolderLock(Path.of(arguments[0]), Long.parseLong(arguments[2]))) {
            if (arguments[1].equals("read")) {
                lock.takeToRead();
            } else {
                lock.takeToWrite();
            }
            System.out.write('+');
            System.out.flush();
            assertEquals(-1, System.in.read());
        }
    }

    private void endHolder() throws InterruptedException {
        holder.close();
        holder.code();
    }

    @AfterEach
    void leaveNobody() throws InterruptedException {
        if (holder != null) {
            endHolder();
        }
    }

    private Invocation weft(String arguments) {
        return Invocation.of((arguments + " --data-dir " + data()).split(" "));
    }

    private static void assertInUse(Invocation command, long pid) {
        assertEquals(ExitCode.USAGE, command.code(), command.out() + command.err());
        assertEquals(1, command.err().lines().count(), command.err());
        String told = ": in use by process " + pid + ": wait for it to end, or name another folder";
        assertTrue(command.err().contains(told), command.err());
    }

    @Test
    void aFolderThatARunWritesToIsRefusedToOthersUntilItDies() throws Exception {
        assertEquals(0, weft("gen-data " + SMALL).code());
        lockElsewhere("write", 1);
        String before = Files.readString(data().resolve("data.txt"));
        for (String command :
                List.of(
                        "run " + SMALL + " --seed 2",
                        "run " + SMALL + " --seed 2 --launcher processes",
                        "run " + SMALL + " --seed 2 -r sim -v Ascend910B1 --verify",
                        "gen-data " + SMALL + " --seed 2",
                        "verify")) {
            assertInUse(weft(command), holder.pid());
        }
        assertEquals(before, Files.readString(data().resolve("data.txt")));
        assertFalse(Files.exists(data().resolve("outputs.txt")));
        endHolder();
        assertEquals(0, weft("run --seed 2 --warmup 0 --iterations 1 " + SMALL).code());
    }

    @Test
    void readersDoNotLockEachOtherOut() throws Exception {
        assertEquals(0, weft("run --warmup 0 --iterations 1 " + SMALL).code());
        lockElsewhere("read", 1);
        assertEquals(0, weft("verify").code());
        assertEquals(0, weft("verify").code());
        Invocation run = weft("run " + SMALL);
        assertEquals(ExitCode.USAGE, run.code());
        assertTrue(run.err().contains(": in use by "), run.err());
    }

    /** Such as the first ranks of hosts that look at one folder. */
    @Test
    void ranksOfOneRunDoNotLockEachOtherOut() throws Exception {
        lockElsewhere("write", 77);
        try (FolderLock same = new FolderLock(data(), 77);
                FolderLock other = new FolderLock(data(), 78)) {
            same.takeToWrite();
            assertThrows(UsageException.class, other::takeToWrite);
        }
        assertInUse(weft("gen-data " + SMALL), holder.pid());
    }

    /** A process's second look at its own lock must not drop it. */
    @Test
    void oneProcessIsToldOfItselfAndKeepsItsLock() throws Exception {
        try (FolderLock lock = new FolderLock(data())) {
            lock.takeToWrite();
            assertInUse(weft("gen-data " + SMALL), ProcessHandle.current().pid());
            assertInUse(weft("run " + SMALL), ProcessHandle.current().pid());
        }
        assertEquals(0, weft("gen-data " + SMALL).code());
    }
}
