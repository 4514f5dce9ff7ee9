package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.SharedMemory;
import dev.weft.report.RecordMaker;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the system says of the sockets of a command and all its ranks: none is for outsiders. */
class ListeningIT {

    private static final String LISTENS = "0A";

    @TempDir Path folder;

    private SharedMemory shared;
    private ChildProcess command;

    /** A socket that waits for others, as a line of /proc/net tells it. */
    private record Listener(long pid, String protocol, InetAddress address, int port) {}

    @BeforeEach
    void makeSharedMemory() throws IOException {
        assumeTrue(Files.exists(Path.of("/proc/self/net/tcp")), "no /proc/net here");
        shared = SharedMemory.create();
    }

    @AfterEach
    void end() throws Exception {
        if (command != null) {
            command.process().destroy();
            command.code();
        }
    }

    private void start(String arguments) throws IOException {
        command =
                ChildProcess.weft(folder, arguments)
                        .environment(SharedMemory.VARIABLE, shared.folder())
                        .start();
    }

    private void startRun(String more) throws IOException {
        start(
                "run --launcher processes -n 2 "
                        + (ChildProcess.ENDLESS + more + "--data-dir " + folder.resolve("out")));
    }

    /** All that was ever seen to listen until {@code reached}, and at that time. */
    private Set<Listener> listenersUntil(Callable<Boolean> reached) throws Exception {
        Set<Listener> seen = new HashSet<>();
        command.await(
                () -> {
                    boolean there = reached.call();
                    seen.addAll(listeners(command.pid()));
                    for (ProcessHandle child : command.process().descendants().toList()) {
                        seen.addAll(listeners(child.pid()));
                    }
                    return there;
                });
        return seen;
    }

    private static Set<Listener> listeners(long pid) throws IOException {
        Set<Listener> listeners = new HashSet<>();
        Path process = Path.of("/proc", Long.toString(pid));
        try {
            Set<String> inodes = socketInodes(process.resolve("fd"));
            for (String protocol : List.of("tcp", "tcp6", "udp", "udp6")) {
                Path table = process.resolve("net").resolve(protocol);
                List<String> lines = Files.exists(table) ? Files.readAllLines(table) : List.of("");
                for (String line : lines.subList(1, lines.size())) {
                    String[] fields = line.strip().split("\\s+");
                    boolean waits = protocol.startsWith("udp") || fields[3].equals(LISTENS);
                    if (waits && inodes.contains(fields[9])) {
                        listeners.add(listener(pid, protocol, fields[1]));
                    }
                }
            }
        } catch (NoSuchFileException e) {
            return Set.of(); // the process has just ended
        }
        return listeners;
    }

    private static Set<String> socketInodes(Path descriptors) throws IOException {
        Set<String> inodes = new HashSet<>();
        try (Stream<Path> all = Files.list(descriptors)) {
            for (Path descriptor : all.toList()) {
                try {
                    String target = Files.readSymbolicLink(descriptor).toString();
                    if (target.startsWith("socket:[")) {
                        inodes.add(target.substring("socket:[".length(), target.length() - 1));
                    }
                } catch (NoSuchFileException e) {
                    continue; // closed meanwhile
                }
            }
        }
        return inodes;
    }

    /** The kernel writes addresses as words in this machine's order, which is little-endian. */
    private static Listener listener(long pid, String protocol, String local) throws IOException {
        String[] parts = local.split(":");
        byte[] words = HexFormat.of().parseHex(parts[0]);
        byte[] address = new byte[words.length];
        for (int i = 0; i < words.length; i++) {
            address[i] = words[i / 4 * 4 + 3 - i % 4];
        }
        return new Listener(
                pid, protocol, InetAddress.getByAddress(address), Integer.parseInt(parts[1], 16));
    }

    /**
     * The command alone listens, at the address that it has told, which is on loopback. A process
     * that is just being started still holds what its parent has: the same socket, hence port.
     */
    private void assertServes(URI told, Set<Listener> listeners) {
        assertTrue(
                listeners.stream().anyMatch(one -> one.pid() == command.pid()),
                listeners.toString());
        for (Listener one : listeners) {
            assertEquals(told.getPort(), one.port(), listeners.toString());
            assertTrue(one.protocol().startsWith("tcp"), one.toString());
            assertTrue(one.address().isLoopbackAddress(), one.toString());
        }
    }

    private static URI address(String printed) {
        int start = printed.indexOf("http://");
        return URI.create(printed.substring(start, printed.indexOf('\n', start)).strip());
    }

    @Test
    void ranksAndTheirCommandListenNowhere() throws Exception {
        startRun("");
        assertEquals(Set.of(), listenersUntil(shared::isMeasuring));
        assertEquals(
                2, command.process().children().count(), "a process for each rank was looked at");
    }

    @Test
    void aWatchedRunListensOnLoopbackAlone() throws Exception {
        startRun("--watch ");
        Set<Listener> listeners = listenersUntil(shared::isMeasuring);
        assertServes(address(command.out()), listeners);
    }

    @Test
    void aServedReportListensOnLoopbackAlone() throws Exception {
        Path record = Files.writeString(folder.resolve("r.json"), new RecordMaker().json());
        start("report --serve " + record);
        Set<Listener> listeners = listenersUntil(() -> command.out().endsWith("\n"));
        assertServes(address(command.out()), listeners);
    }

    /** Or the tests above would prove nothing. */
    @Test
    void theLookSeesWhoListensToAll() throws IOException {
        try (ServerSocket open = new ServerSocket(0)) {
            InetAddress found = addressHere(open.getLocalPort());
            assertFalse(found.isLoopbackAddress(), found.toString());
        }
        try (ServerSocket own = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            InetAddress found = addressHere(own.getLocalPort());
            assertTrue(found.isLoopbackAddress(), found.toString());
        }
    }

    private static InetAddress addressHere(int port) throws IOException {
        return listeners(ProcessHandle.current().pid()).stream()
                .filter(listener -> listener.port() == port)
                .findFirst()
                .orElseThrow()
                .address();
    }
}
