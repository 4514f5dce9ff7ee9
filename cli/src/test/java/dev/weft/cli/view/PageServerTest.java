package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.report.JsonText;
import dev.weft.report.PageData;
import dev.weft.report.RecordMaker;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Over real sockets, since no client sends what an attacker would. */
public class PageServerTest {

    private static final long HOUR_NS = TimeUnit.HOURS.toNanos(1);

    static {
        // Read once per process. Where another test was first, the test of halves takes 10 s.
        System.setProperty("sun.net.httpserver.maxReqTime", "2");
        System.setProperty("sun.net.httpserver.clockTick", "500");
    }

    private final AtomicLong version = new AtomicLong(3);
    private final AtomicInteger made = new AtomicInteger();

    private final PageServer server =
            new PageServer(0, () -> new PageServer.Edition(version.get(), this::page));

    private final URI address = URI.create(server.address());

    private PageData page() {
        made.incrementAndGet();
        return PageData.of(new RecordMaker().label("<b>").shown());
    }

    @AfterEach
    void stop() {
        server.close();
    }

    /** What a server said. */
    public record Answer(int code, Map<String, String> headers, String body) {

        /** Sends the text as it is and reads until the server hangs up. */
        static Answer to(int port, String request) throws IOException {
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 9000);
                socket.setSoTimeout(20_000);
                socket.getOutputStream().write(request.getBytes(StandardCharsets.UTF_8));
                socket.getOutputStream().flush();
                byte[] all = socket.getInputStream().readAllBytes();
                return of(new String(all, StandardCharsets.UTF_8));
            }
        }

        private static Answer of(String text) {
            int end = text.indexOf("\r\n\r\n");
            assertTrue(end > 0, "an answer: " + text);
            String[] lines = text.substring(0, end).split("\r\n");
            Map<String, String> headers = new TreeMap<>();
            for (int i = 1; i < lines.length; i++) {
                int colon = lines[i].indexOf(':');
                headers.put(
                        lines[i].substring(0, colon).toLowerCase(Locale.ROOT),
                        lines[i].substring(colon + 1).strip());
            }
            return new Answer(
                    Integer.parseInt(lines[0].split(" ")[1]), headers, text.substring(end + 4));
        }

        /** Like a browser: with the right host. */
        public static Answer get(URI address, String... moreHeaders) throws IOException {
            return to(
                    address.getPort(), request("GET", address.getRawPath(), address, moreHeaders));
        }
    }

    private static String request(String method, String path, URI address, String... moreHeaders) {
        StringBuilder request = new StringBuilder();
        request.append(method).append(' ').append(path).append(" HTTP/1.1\r\n");
        request.append("Host: ").append(address.getAuthority()).append("\r\n");
        request.append("Connection: close\r\n");
        for (String header : moreHeaders) {
            request.append(header).append("\r\n");
        }
        return request.append("\r\n").toString();
    }

    private Answer ask(String method, String path, String... moreHeaders) throws IOException {
        return Answer.to(address.getPort(), request(method, path, address, moreHeaders));
    }

    private String token() {
        return address.getPath().replace("/", "");
    }

    @Test
    void servesThePageAndItsData() throws IOException {
        Answer page = Answer.get(address);
        assertEquals(200, page.code());
        assertEquals("text/html; charset=utf-8", page.headers().get("content-type"));
        assertTrue(page.body().startsWith("<!DOCTYPE html>"), page.headers().toString());
        assertTrue(page.body().stripTrailing().endsWith("</html>"), "whole");
        Answer data = Answer.get(address.resolve("data"));
        assertEquals(200, data.code());
        assertEquals("application/json; charset=utf-8", data.headers().get("content-type"));
        assertEquals("<b>", JsonText.at(JsonText.parse(data.body()), "runs.0.name"));
        assertEquals(200, Answer.get(address.resolve("data?x=1")).code(), "a query is no path");
    }

    @Test
    void listensOnLoopbackAlone() throws IOException {
        assertTrue(InetAddress.getByName(address.getHost()).isLoopbackAddress(), "" + address);
        for (NetworkInterface network :
                NetworkInterface.networkInterfaces().filter(PageServerTest::isOutward).toList()) {
            for (InetAddress outward : network.inetAddresses().toList()) {
                try (Socket socket = new Socket()) {
                    InetSocketAddress there = new InetSocketAddress(outward, address.getPort());
                    assertThrows(IOException.class, () -> socket.connect(there, 500), "" + there);
                }
            }
        }
    }

    private static boolean isOutward(NetworkInterface network) {
        try {
            return network.isUp() && !network.isLoopback();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void theTokenIsLongAndNeverTheSame() {
        assertTrue(token().matches("[0-9a-f]{32}"), token());
        try (PageServer other = new PageServer(0, () -> null)) {
            assertNotEquals(token(), URI.create(other.address()).getPath().replace("/", ""));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/",
                "/data",
                "/TOKEN",
                "/TOKENx/",
                "/TOKEN/data/",
                "/TOKEN/data/x",
                "/TOKEN/Data",
                "/TOKEN/index.html",
                "/TOKEN/r.json",
                "/TOKEN/../etc/passwd",
                "/TOKEN/%2e%2e/etc/passwd",
                "/TOKEN/%2E%2E%2Fetc%2Fpasswd",
                "/TOKEN/..%2f..%2fetc/passwd",
                "/TOKEN/data/../../etc/passwd",
                "/TOKEN/data%2f..%2f..%2fetc%2fpasswd",
                "/TOKEN//etc/passwd",
                "/TOKEN/./",
                "/TOKEN/data%00",
                "/./TOKEN/",
                "/x/../TOKEN/",
                "/etc/passwd",
                "/favicon.ico",
                "/00000000000000000000000000000000/",
                "/00000000000000000000000000000000/data"
            })
    void anythingElseIsNotThere(String path) throws IOException {
        Answer answer = ask("GET", path.replace("TOKEN", token()));
        assertEquals(404, answer.code(), path);
        assertEquals("nothing here\n", answer.body());
        assertFalse(answer.headers().containsKey("etag"), "tells nothing of what is there");
        assertFalse(server.hasReader(HOUR_NS), "nobody has seen the page");
    }

    @Test
    void aTokenInCapitalsOrCutShortIsAnother() throws IOException {
        assertEquals(404, ask("GET", "/" + token().substring(1) + "/").code());
        assertEquals(404, ask("GET", "/" + token() + "0/").code());
        assertEquals(404, ask("GET", "/" + token().toUpperCase(Locale.ROOT) + "G/").code());
    }

    /** Another site's page may reach loopback by a name of its own, but cannot hide that name. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "example.com",
                "example.com:PORT",
                "127.0.0.1",
                "127.0.0.1:1",
                "127.0.0.2:PORT",
                "localhost",
                "localhost:1",
                "localhost.example.com:PORT",
                "127.0.0.1:PORT.example.com",
                "user@127.0.0.1:PORT",
                "0.0.0.0:PORT",
                " "
            })
    void anotherHostIsRefused(String host) throws IOException {
        String name = host.replace("PORT", "" + address.getPort());
        Answer answer =
                Answer.to(
                        address.getPort(),
                        "GET "
                                + address.getPath()
                                + "data HTTP/1.1\r\nConnection: close\r\nHost: "
                                + name
                                + "\r\n\r\n");
        assertEquals(421, answer.code(), name);
        assertEquals("not a name of this server\n", answer.body());
        assertFalse(server.hasReader(HOUR_NS));
    }

    @Test
    void itsOwnNamesAreAllowed() throws IOException {
        for (String host : new String[] {"127.0.0.1", "localhost"}) {
            String request =
                    "GET %sdata HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n"
                            .formatted(address.getPath(), host, address.getPort());
            assertEquals(200, Answer.to(address.getPort(), request).code(), host);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "Host: 127.0.0.1:PORT\r\nHost: example.com\r\n"})
    void noHostOrTwoAreRefused(String headers) throws IOException {
        Answer answer =
                Answer.to(
                        address.getPort(),
                        "GET "
                                + address.getPath()
                                + " HTTP/1.0\r\n"
                                + headers.replace("PORT", "" + address.getPort())
                                + "\r\n");
        assertEquals(421, answer.code());
    }

    /** The request line may name a host too. */
    @Test
    void anAbsoluteAddressDoesNotReplaceTheHost() throws IOException {
        String line = "GET http://" + address.getAuthority() + address.getPath() + " HTTP/1.1\r\n";
        assertEquals(
                421,
                Answer.to(
                                address.getPort(),
                                line + "Host: example.com\r\nConnection: close\r\n\r\n")
                        .code());
    }

    @ParameterizedTest
    @ValueSource(strings = {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW"})
    void otherMethodsAreRefused(String method) throws IOException {
        for (String path : new String[] {address.getPath(), address.getPath() + "data"}) {
            Answer answer = ask(method, path, "Content-Length: 0");
            assertEquals(405, answer.code(), method);
            assertEquals("GET", answer.headers().get("allow"));
            assertFalse(answer.body().contains("{"), "no data");
        }
        assertEquals(404, ask(method, "/", "Content-Length: 0").code(), "not even that it exists");
        assertFalse(server.hasReader(HOUR_NS));
    }

    @Test
    void whatIsUnchangedIsNotSentAgain() throws IOException {
        URI data = address.resolve("data");
        Answer first = Answer.get(data);
        String tag = first.headers().get("etag");
        assertEquals("\"3\"", tag);
        Answer again = Answer.get(data, "If-None-Match: " + tag);
        assertEquals(304, again.code());
        assertEquals("", again.body());
        assertEquals(tag, again.headers().get("etag"));
        assertEquals(200, Answer.get(data, "If-None-Match: \"2\"").code());
        version.set(4);
        Answer next = Answer.get(data, "If-None-Match: " + tag);
        assertEquals(200, next.code());
        assertEquals("\"4\"", next.headers().get("etag"));
        assertEquals(200, Answer.get(address, "If-None-Match: \"4\"").code(), "pages are opened");
    }

    @ParameterizedTest
    @CsvSource({"GET,,200", "GET,data,200", "GET,x,404", "POST,,405"})
    void everyAnswerKeepsToItself(String method, String path, int code) throws IOException {
        String asksFor = address.getPath() + (path == null ? "" : path);
        Answer answer = ask(method, asksFor, "Origin: http://example.com", "Content-Length: 0");
        assertEquals(code, answer.code());
        Map<String, String> headers = answer.headers();
        assertEquals("no-store", headers.get("cache-control"));
        assertEquals(
                "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
                        + " img-src data:; connect-src 'self'",
                headers.get("content-security-policy"));
        assertEquals("no-referrer", headers.get("referrer-policy"));
        assertEquals("nosniff", headers.get("x-content-type-options"));
        assertEquals("DENY", headers.get("x-frame-options"));
        assertEquals("same-origin", headers.get("cross-origin-resource-policy"));
        assertFalse(headers.keySet().stream().anyMatch(name -> name.startsWith("access-control")));
        assertEquals(
                "" + answer.body().getBytes(StandardCharsets.UTF_8).length,
                headers.get("content-length"));
    }

    @Test
    void knowsWhoReadsAndWhat() throws IOException {
        assertFalse(server.hasReader(HOUR_NS));
        assertEquals(-1, server.servedVersion());
        Answer.get(address.resolve("data"));
        assertTrue(server.hasReader(HOUR_NS));
        assertFalse(server.hasReader(0), "long ago");
        awaitServed(3);
        version.set(9);
        assertEquals(3, server.servedVersion());
        Answer.get(address);
        awaitServed(9);
    }

    /** The server counts an answer once it has sent it, and its reader may be faster. */
    private void awaitServed(long wanted) {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (server.servedVersion() != wanted && System.nanoTime() < until) {
            Thread.onSpinWait();
        }
        assertEquals(wanted, server.servedVersion());
    }

    private Socket connected() throws IOException {
        Socket socket = new Socket();
        InetAddress loopback = InetAddress.getLoopbackAddress();
        socket.connect(new InetSocketAddress(loopback, address.getPort()), 9000);
        // Far longer than the server's own limit: its end is waited for, not measured.
        socket.setSoTimeout(60_000);
        return socket;
    }

    @Test
    void halfARequestIsNotWaitedForForEver() throws IOException {
        List<Socket> halves = new ArrayList<>();
        try {
            for (String half : List.of("", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nA: ")) {
                Socket socket = connected();
                halves.add(socket);
                socket.getOutputStream().write(half.getBytes(StandardCharsets.UTF_8));
                socket.getOutputStream().flush();
            }
            for (Socket socket : halves) {
                assertEquals(-1, first(socket), "closed without an answer");
            }
        } finally {
            for (Socket socket : halves) {
                socket.close();
            }
        }
    }

    /** The first byte of the answer, -1 where the server hangs up. */
    private static int first(Socket socket) throws IOException {
        try {
            return socket.getInputStream().read();
        } catch (SocketException e) {
            // Reset: it has hung up before it has read the request.
            return -1;
        }
    }

    @Test
    void manyThatDoNotReadShareOneCopyAndAreFew() throws IOException {
        String request =
                request("GET", address.getPath(), address).replace("Connection: close\r\n", "");
        List<Socket> stalled = new ArrayList<>();
        int answered = 0;
        try {
            for (int i = 0; i < 100; i++) {
                Socket socket = connected();
                stalled.add(socket);
                answered += answers(socket, request) ? 1 : 0;
            }
        } finally {
            for (Socket socket : stalled) {
                socket.close();
            }
        }
        assertEquals(PageServer.MOST_CONNECTIONS, answered);
        assertEquals(1, made.get(), "copies");
    }

    /** Whether an answer begins to come, of which no more than that is read. */
    private static boolean answers(Socket socket, String request) throws IOException {
        try {
            socket.getOutputStream().write(request.getBytes(StandardCharsets.UTF_8));
            return first(socket) == 'H';
        } catch (SocketException e) {
            // It has hung up before the request was out.
            return false;
        }
    }

    @Test
    void aLargeAnswerIsWrittenInPieces() throws IOException {
        byte[] all = new byte[3 * PageServer.WRITE_BYTES + 5];
        new Random(1).nextBytes(all);
        List<Integer> sizes = new ArrayList<>();
        ByteArrayOutputStream got =
                new ByteArrayOutputStream() {
                    @Override
                    public synchronized void write(byte[] bytes, int from, int count) {
                        sizes.add(count);
                        super.write(bytes, from, count);
                    }
                };
        PageServer.write(all, got);
        assertArrayEquals(all, got.toByteArray());
        int whole = PageServer.WRITE_BYTES;
        assertEquals(List.of(whole, whole, whole, 5), sizes);
    }

    @Test
    void isGoneOnceClosed() {
        server.close();
        assertThrows(IOException.class, () -> Answer.get(address));
    }

    @Test
    void aPortThatIsTakenIsNamed() {
        Exception failure =
                assertThrows(
                        UncheckedIOException.class,
                        () -> new PageServer(address.getPort(), () -> null));
        assertTrue(
                failure.getMessage()
                        .startsWith("cannot listen on loopback, port " + address.getPort() + ": "),
                failure.getMessage());
    }
}
