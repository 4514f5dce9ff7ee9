package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.ThreadGroupRun;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How ranks meet in a folder, what they leave there, and whom they refuse to meet. */
class RendezvousTest {

    private static final Duration LONG = Duration.ofSeconds(60);

    /** For ranks that may wait in vain. */
    private static final Duration IN_VAIN = Duration.ofSeconds(3);

    private static final Duration SHORT = Duration.ofMillis(200);

    @TempDir Path temporary;

    private static TreeSet<String> names(Path folder) throws IOException {
        TreeSet<String> names = new TreeSet<>();
        try (Stream<Path> entries = Files.list(folder)) {
            entries.forEach(entry -> names.add(entry.getFileName().toString()));
        }
        return names;
    }

    @Test
    void onceAllHaveMetTheFolderHoldsOnlyLocksAndInTheEndNothing() throws IOException {
        try (ShmJob job = ShmJob.create()) {
            Path folder = job.folder();
            ThreadGroupRun threads = new ThreadGroupRun();
            for (int r = 0; r < 3; r++) {
                int rank = r;
                threads.start(
                        () -> {
                            ShmFabric fabric =
                                    Rendezvous.join(folder, rank, 3, RunToken.NONE, LONG);
                            Region region = fabric.allocate(5000);
                            fabric.barrier();
                            // No region and no control block has a name any more. A slow peer may
                            // be about to remove its own, so each looks for its own only.
                            String own = "rank-" + rank + ".lock";
                            assertEquals("rw-------", ShmJobTest.mode(folder.resolve(own)));
                            for (String name : names(folder)) {
                                assertFalse(name.equals("rank-" + rank + ".control"), name);
                                assertFalse(name.equals("w-0-" + rank), name);
                            }
                            fabric.barrier();
                            region.close();
                            fabric.close();
                        });
            }
            threads.join();
            assertEquals(List.of("starter.lock"), List.copyOf(names(folder)));
        }
    }

    @Test
    void filesInTheFolderArePrivate() throws IOException {
        Path folder = PrivateFiles.folder(temporary.resolve("job"));
        Path region = folder.resolve("region");
        SharedParts.reserve(region, 3_000_000);
        assertEquals("rw-------", ShmJobTest.mode(region));
        assertEquals(3_000_000, Files.size(region));
        try (HeldLock lock = HeldLock.take(folder.resolve("rank-1.lock"))) {
            assertNotNull(lock);
            assertEquals("rw-------", ShmJobTest.mode(folder.resolve("rank-1.lock")));
        }
    }

    @Test
    void aRankThatDoesNotComeIsNamed() throws IOException {
        Path folder = PrivateFiles.folder(temporary.resolve("job"));
        StallException stall =
                assertThrows(
                        StallException.class,
                        () -> Rendezvous.join(folder, 0, 2, RunToken.NONE, SHORT));
        assertEquals(1, stall.peer());
        assertTrue(stall.getMessage().contains("the arrival of rank 1"), stall.getMessage());
        assertEquals(List.of(), List.copyOf(names(folder)), "nothing is left");
    }

    @Test
    void aRankThatIsTakenIsRefused() throws IOException {
        Path folder = PrivateFiles.folder(temporary.resolve("job"));
        try (ShmFabric fabric = Rendezvous.join(folder, 0, 1, RunToken.NONE, LONG)) {
            String message =
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> Rendezvous.join(folder, 0, 1, RunToken.NONE, LONG))
                            .getMessage();
            assertTrue(message.contains("rank 0 is taken"), message);
            assertTrue(HeldLock.isHeld(folder.resolve("rank-0.lock")), "and stays so");
            fabric.barrier();
        }
    }

    /** Lays down a control file of "rank 1" and tells how rank 0 refuses it. */
    private String refusal(Consumer<MemorySegment> content, long bytes) throws IOException {
        Path folder = PrivateFiles.folder(temporary.resolve("job" + System.nanoTime()));
        Path control = folder.resolve("rank-1.control");
        SharedParts.reserve(control, bytes);
        try (Arena arena = Arena.ofConfined();
                HeldLock lock = HeldLock.take(folder.resolve("rank-1.lock"))) {
            assertNotNull(lock);
            content.accept(SharedParts.map(control, arena));
            String message =
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> Rendezvous.join(folder, 0, 2, RunToken.NONE, LONG))
                            .getMessage();
            assertTrue(message.startsWith("the control block of rank 1, " + control), message);
            assertFalse(Files.exists(folder.resolve("rank-0.lock")), "rank 0 has left");
            return message;
        }
    }

    @Test
    void aControlFileOfAnotherKindVersionOrWorldIsRefused() throws IOException {
        long whole = ControlBlock.BYTES + MemoryRegion.HEADER_BYTES;
        long at = MemoryRegion.HEADER_BYTES;
        Random random = new Random(5);
        byte[] noise = new byte[(int) whole];
        random.nextBytes(noise);
        String garbage = refusal(file -> file.copyFrom(MemorySegment.ofArray(noise)), whole);
        assertTrue(garbage.endsWith("is not a Weft control file"), garbage);
        for (long bytes : new long[] {0, 1, at, at + 8, whole - 1}) {
            String cut = refusal(file -> file.fill((byte) 1), bytes);
            assertTrue(cut.endsWith("is not a Weft control file"), cut);
        }
        String version =
                refusal(
                        file -> {
                            ControlBlock.initialise(file.asSlice(at), 2);
                            file.set(ValueLayout.JAVA_INT, at + ControlBlock.VERSION_AT, 77);
                        },
                        whole);
        assertTrue(version.endsWith("has layout version 77, this Weft has 3"), version);
        String world = refusal(file -> ControlBlock.initialise(file.asSlice(at), 3), whole);
        assertTrue(world.endsWith("expects 3 ranks, this rank 2"), world);
    }

    /** How rank 0, without a token, refuses a peer that says this of itself. */
    private String refusal(RunToken token, long build) throws IOException {
        long at = MemoryRegion.HEADER_BYTES;
        return refusal(
                file -> {
                    ControlBlock.initialise(file.asSlice(at), 2);
                    ControlBlock.identify(file.asSlice(at), token, build);
                },
                ControlBlock.BYTES + at);
    }

    @Test
    void aRankOfAnotherRunIsRefusedWithoutItsToken() throws IOException {
        RunToken token = RunToken.random();
        String message = refusal(token, BuildId.current());
        assertTrue(
                message.endsWith(
                        "is of another run: it has a token, this rank no token; expected the same"
                                + " WEFT_TOKEN on all ranks, as their starter sets it"),
                message);
        assertFalse(message.contains(token.hex().substring(0, 8)), message);
    }

    @Test
    void aRankOfAnotherBuildIsRefusedWithBoth() throws IOException {
        String message = refusal(RunToken.NONE, 0xabcdef);
        assertTrue(
                message.endsWith(
                        "is of build 0000000000abcdef, this rank of build "
                                + BuildId.text(BuildId.current())
                                + ": expected ranks of one and the same Weft"),
                message);
    }

    /** Two starts whose ranks were told the same folder. */
    @Test
    void ranksOfTwoStartsDoNotMeet() {
        try (ShmJob job = ShmJob.create(temporary);
                ShmJob other = ShmJob.create(temporary)) {
            Queue<String> messages = new ConcurrentLinkedQueue<>();
            ThreadGroupRun threads = new ThreadGroupRun();
            for (int r = 0; r < 2; r++) {
                Map<String, String> environment = job.environment(r, 2, IN_VAIN);
                if (r == 1) {
                    environment.put("WEFT_TOKEN", other.environment(1, 2, LONG).get("WEFT_TOKEN"));
                }
                threads.start(
                        () ->
                                messages.add(
                                        assertThrows(
                                                        RuntimeException.class,
                                                        () ->
                                                                RankEnvironment.join(
                                                                        environment, IN_VAIN))
                                                .getMessage()));
            }
            threads.join();
            // The other one may find that the first has gone again, and wait for it in vain.
            assertTrue(
                    messages.stream().anyMatch(m -> m.contains("a token, this rank another one")),
                    messages.toString());
        }
    }

    @Test
    void aRankWithoutATokenIsRefusedWhereAStarterHasMadeTheFolder() {
        try (ShmJob job = ShmJob.create(temporary)) {
            Map<String, String> environment = job.environment(0, 1, LONG);
            environment.remove("WEFT_TOKEN");
            assertRefused(
                    environment,
                    "environment variable WEFT_TOKEN is not set: expected the one of the command"
                            + " that made "
                            + job.folder());
            environment.put("WEFT_TOKEN", "secret");
            assertRefused(environment, "WEFT_TOKEN has 6 characters: expected the 32");
        }
    }

    @Test
    void ranksMeetWithoutAStarterInAFolderThatTheyMake() {
        Path folder = temporary.resolve("by-hand");
        ThreadGroupRun threads = new ThreadGroupRun();
        for (int r = 0; r < 2; r++) {
            Map<String, String> environment =
                    Map.of("WEFT_RANK", "" + r, "WEFT_RANKS", "2", "WEFT_JOB", folder.toString());
            threads.start(
                    () -> {
                        try (Transport fabric = RankEnvironment.join(environment, LONG)) {
                            fabric.barrier();
                        }
                    });
        }
        threads.join();
        assertTrue(Files.exists(folder), "whose it is, is for those who start the ranks to say");
    }

    /** What torchrun sets, and nothing of Weft's. */
    private static Map<String, String> torchrun(int rank, int ranks, int port) {
        return Map.of(
                "RANK", "" + rank,
                "LOCAL_RANK", "" + rank,
                "WORLD_SIZE", "" + ranks,
                "MASTER_ADDR", "localhost",
                "MASTER_PORT", "" + port,
                "TORCHELASTIC_RUN_ID", "none");
    }

    @Test
    void ranksOfTorchrunMeetByItsVariablesAndRunsDoNotMix() throws IOException {
        int port = 1 + new Random().nextInt(60_000);
        ThreadGroupRun threads = new ThreadGroupRun();
        for (int i = 0; i < 4; i++) {
            int rank = i % 2;
            int run = i / 2;
            threads.start(
                    () -> {
                        Map<String, String> environment = torchrun(rank, 2, port + run);
                        try (Transport fabric = RankEnvironment.join(environment, LONG)) {
                            assertEquals(rank, fabric.rank());
                            assertEquals(2, fabric.size());
                            for (long other : fabric.exchange(run)) {
                                assertEquals(run, other);
                            }
                        }
                    });
        }
        threads.join();
        for (int run = 0; run < 2; run++) {
            Path folder = ShmJob.torchrunFolder("localhost:" + (port + run) + "/none");
            assertFalse(Files.exists(folder), "the last rank removes it");
        }
    }

    @Test
    void torchrunsVariablesAreCheckedWithTheirValues() {
        assertRefused(Map.of("WORLD_SIZE", "2"), "environment variable LOCAL_RANK is not set");
        assertRefused(
                Map.of("WORLD_SIZE", "2", "RANK", "1"),
                "environment variable MASTER_PORT is not set");
        assertRefused(
                Map.of("WORLD_SIZE", "2", "RANK", "2", "MASTER_PORT", "29500"),
                "RANK=2, WORLD_SIZE=2, MASTER_PORT=29500: expected a rank below the ranks");
        assertRefused(
                Map.of("WORLD_SIZE", "2", "RANK", "0", "MASTER_PORT", "29500"),
                "2 ranks of which 2 are on this host, MASTER_ADDR=: expected");
        assertRefused(
                Map.of(
                        "WORLD_SIZE", "2",
                        "RANK", "0",
                        "MASTER_PORT", "29500",
                        "MASTER_ADDR", "192.0.2.1"),
                "MASTER_ADDR=192.0.2.1: expected all on this host and its name or localhost; ranks"
                        + " on several hosts need MPI");
        assertRefused(
                Map.of(
                        "WORLD_SIZE", "4",
                        "RANK", "0",
                        "LOCAL_WORLD_SIZE", "2",
                        "MASTER_PORT", "29500",
                        "MASTER_ADDR", "localhost"),
                "4 ranks of which 2 are on this host");
    }

    /** The control block of a killed rank is not taken for a living one's. */
    @Test
    void aControlFileWithoutAHeldLockIsNotMet() throws IOException {
        Path folder = PrivateFiles.folder(temporary.resolve("job"));
        Path control = folder.resolve("rank-1.control");
        SharedParts.reserve(control, ControlBlock.BYTES + MemoryRegion.HEADER_BYTES);
        PrivateFiles.create(folder.resolve("rank-1.lock")).close();
        assertThrows(
                StallException.class, () -> Rendezvous.join(folder, 0, 2, RunToken.NONE, SHORT));
    }

    /** Peers that wait for the rest learn why one who has come gave up. */
    @Test
    void ranksThatDisagreeOnTheWorldAllEnd() throws IOException {
        Path folder = PrivateFiles.folder(temporary.resolve("job"));
        ThreadGroupRun threads = new ThreadGroupRun();
        for (int r = 0; r < 2; r++) {
            int rank = r;
            threads.start(
                    () -> {
                        RuntimeException failure =
                                assertThrows(
                                        RuntimeException.class,
                                        () ->
                                                Rendezvous.join(
                                                        folder,
                                                        rank,
                                                        2 + rank,
                                                        RunToken.NONE,
                                                        SHORT));
                        String message = failure.getMessage();
                        assertTrue(
                                message.contains("ranks, this rank")
                                        || message.contains("the arrival of rank"),
                                message);
                    });
        }
        threads.join();
        assertEquals(List.of(), List.copyOf(names(folder)));
    }

    @Test
    void theEnvironmentIsCheckedWithItsValues() {
        assertRefused(Map.of(), "expected a start by ./weft launch -n RANKS -- PROGRAM");
        assertRefused(Map.of("WEFT_RANK", "0"), "environment variable WEFT_RANKS is not set");
        assertRefused(
                Map.of("WEFT_RANK", "0", "WEFT_RANKS", "two"),
                "environment variable WEFT_RANKS is two");
        assertRefused(Map.of("WEFT_RANKS", "2", "WEFT_RANK", "-1"), "WEFT_RANK is -1");
        assertRefused(Map.of("WEFT_RANKS", "0", "WEFT_RANK", "0"), "0 ranks: expected 1 to 4096");
        assertRefused(
                Map.of("WEFT_RANKS", "2", "WEFT_RANK", "2", "WEFT_JOB", "/x"),
                "WEFT_RANK=2, WEFT_RANKS=2, WEFT_JOB=/x");
        assertRefused(Map.of("WEFT_RANKS", "2", "WEFT_RANK", "1"), "WEFT_JOB=null");
        assertRefused(
                Map.of(
                        "WEFT_RANKS", "1",
                        "WEFT_RANK", "0",
                        "WEFT_JOB", "/x",
                        "WEFT_DEADLINE_MS", "0"),
                "a deadline of 0 ms: expected more than zero");
    }

    private static void assertRefused(Map<String, String> environment, String message) {
        String told =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> RankEnvironment.join(environment, null))
                        .getMessage();
        assertTrue(told.contains(message), told);
    }
}
