package dev.weft.examples.service;

import static dev.weft.examples.service.Answers.LONG;
import static dev.weft.examples.service.Answers.TEXTS;
import static dev.weft.examples.service.Answers.assertAnswer;
import static dev.weft.examples.service.Answers.get;
import static dev.weft.examples.service.Answers.post;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The jar in processes of its own, as users start it. */
@Timeout(120)
class MainIT {

    @Test
    void theJarRefusesABadOption() throws Exception {
        try (Started jar = new Started(List.of(), "--rank", "2")) {
            assertEquals(2, jar.code());
            assertEquals(1, jar.printed.size(), jar.printed::toString);
            String start = "service: unknown option --rank: expected --port";
            assertTrue(jar.printed.getFirst().startsWith(start), jar.printed::toString);
        }
    }

    @Test
    void theJarServesUntilSigterm() throws Exception {
        try (Started jar = new Started(List.of(), "--port", "0")) {
            int port = jar.awaitPort();
            jar.assertServes(port);
            assertTrue(get(port, "metrics").body().contains("service_request_seconds_count 1"));
            try (Started other = new Started(List.of(), "--port", "" + port)) {
                assertEquals(2, other.code());
                assertEquals(1, other.printed.size(), other.printed::toString);
                assertTrue(
                        other.printed.getFirst().startsWith("service: --port " + port + ": "),
                        other.printed::toString);
            }
            jar.process.toHandle().destroy();
            assertEquals(0, jar.code());
            assertEquals(List.of(), jar.printed);
        }
    }

    /** As many as fit until it ends, while many requests wait. */
    @ParameterizedTest
    @CsvSource({"TERM,0", "INT,130"})
    void onlyASecondSigintCutsTheEndShort(String signal, int code) throws Exception {
        int count = 30;
        String body = "[\"" + "sings and sleeps ".repeat(60) + "\"]";
        // Tests in the background of a shell ignore SIGINT, and so would what they start.
        List<String> interruptible = List.of("env", "--default-signal=INT");
        try (Started jar = new Started(interruptible, "--port", "0");
                HttpClient client = HttpClient.newHttpClient()) {
            int port = jar.awaitPort();
            HttpRequest request =
                    HttpRequest.newBuilder(URI.create("http://localhost:" + port + "/embed"))
                            .POST(HttpRequest.BodyPublishers.ofString(body))
                            .build();
            List<CompletableFuture<HttpResponse<String>>> answers =
                    Stream.generate(
                                    () ->
                                            client.sendAsync(
                                                    request, HttpResponse.BodyHandlers.ofString()))
                            .limit(count)
                            .toList();
            // Each fills a batch: all but one have come, and that one is being encoded.
            while (metric(port, "service_queue") + metric(port, "service_request_seconds_count")
                    < count - 1) {
                LockSupport.parkNanos(1_000_000);
            }
            while (jar.process.isAlive()) {
                String pid = Long.toString(jar.process.pid());
                new ProcessBuilder("kill", "-" + signal, pid).start().waitFor();
            }
            assertEquals(code, jar.code(), jar.printed::toString);
            long answered = answers.stream().filter(MainIT::isAnswered).count();
            assertTrue(code == 0 ? answered >= count - 1 : answered < count - 1, answered + "");
        }
    }

    private static double metric(int port, String name) throws Exception {
        return get(port, "metrics")
                .body()
                .lines()
                .filter(line -> line.startsWith(name + " "))
                .mapToDouble(line -> Double.parseDouble(line.substring(name.length() + 1)))
                .sum();
    }

    private static boolean isAnswered(CompletableFuture<HttpResponse<String>> answer) {
        return answer.handle((response, failure) -> failure == null && response.statusCode() == 200)
                .join();
    }

    /** Rank 1 first, then rank 0, which has the port. At the end SIGTERM goes to the launcher. */
    @Test
    void launchedProcessesServeAgainAfterTheDeathOfARank() throws Exception {
        List<String> launch =
                List.of(
                        java(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        "dev.weft.cli.Main",
                        "launch",
                        "-n",
                        "2",
                        "--restarts",
                        "2",
                        "--deadline",
                        "5s",
                        "--");
        try (Started started = new Started(launch, "--port", "0")) {
            int port = started.awaitPort();
            started.assertServes(port);
            kill(started.rank(1));
            started.assertServes(port);
            kill(started.rank(0));
            port = started.awaitPort();
            started.assertServes(port);
            List<ProcessHandle> ranks = List.of(started.rank(0), started.rank(1));
            started.process.toHandle().destroy();
            assertEquals(128 + 15, started.code());
            assertFalse(ranks.stream().anyMatch(ProcessHandle::isAlive));
            List<String> told =
                    started.printed.stream().filter(line -> line.startsWith("weft: ")).toList();
            assertEquals(
                    List.of(
                            "weft: rank 1 was ended by signal 9: restart 1 of 2",
                            "weft: rank 0 was ended by signal 9: restart 2 of 2",
                            "weft: ended by SIGTERM"),
                    told);
            // The ranks ended well: the first to hear of the end has told the other one.
            assertEquals(5, started.printed.size(), started.printed::toString);
        }
    }

    private static void kill(ProcessHandle rank) throws Exception {
        rank.destroyForcibly();
        rank.onExit().get(LONG.toSeconds(), TimeUnit.SECONDS);
    }

    private static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    /** The jar as a user starts it, with no option of Java. */
    private static final class Started implements AutoCloseable {
        final Process process;

        /** What it has printed, without the lines that name the port. */
        final List<String> printed = new ArrayList<>();

        private final BufferedReader lines;

        Started(List<String> launcher, String... options) throws IOException {
            List<String> command = new ArrayList<>(launcher);
            command.addAll(List.of(java(), "-jar"));
            try (Stream<Path> files = Files.list(Path.of("target"))) {
                files.map(Path::toString)
                        .filter(name -> name.matches(".*weft-example-service-[\\d.]+\\.jar"))
                        .forEach(command::add);
            }
            command.addAll(List.of("--batch-tokens", "128", "--ranks", "1"));
            command.addAll(List.of(options));
            process = new ProcessBuilder(command).redirectErrorStream(true).start();
            lines = process.inputReader();
        }

        int awaitPort() throws IOException {
            String line = lines.readLine();
            while (line != null && !line.startsWith("serving on ")) {
                printed.add(line);
                line = lines.readLine();
            }
            assertTrue(line != null, () -> "it ended: " + printed);
            return Integer.parseInt(line.substring(line.lastIndexOf(':') + 1));
        }

        /** Who is told that a rank failed asks again. */
        void assertServes(int port) throws Exception {
            HttpResponse<String> answer = post(port, "[\"" + TEXTS.get(7) + "\"]");
            while (answer.statusCode() == 503 && answer.body().startsWith("a rank failed")) {
                assertEquals("1", answer.headers().firstValue("Retry-After").orElse("none"));
                answer = post(port, "[\"" + TEXTS.get(7) + "\"]");
            }
            assertEquals(200, answer.statusCode(), answer.body());
            assertAnswer(7, new ObjectMapper().readValue(answer.body(), float[][].class));
            assertEquals(200, get(port, "health").statusCode());
        }

        ProcessHandle rank(int rank) throws IOException {
            for (ProcessHandle child : process.children().toList()) {
                String environment =
                        Files.readString(
                                Path.of("/proc/" + child.pid() + "/environ"),
                                StandardCharsets.ISO_8859_1);
                if (environment.contains("WEFT_RANK=" + rank + "\0")) {
                    return child;
                }
            }
            throw new IllegalStateException("no process of rank " + rank);
        }

        int code() throws Exception {
            lines.lines().forEach(printed::add);
            assertTrue(process.waitFor(1, TimeUnit.MINUTES));
            return process.exitValue();
        }

        @Override
        public void close() {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
    }
}
