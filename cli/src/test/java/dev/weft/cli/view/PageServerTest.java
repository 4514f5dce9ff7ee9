package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.report.JsonText;
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
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a page server sends, to whom, and for how long. */
class PageServerTest extends ServedPage {

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
                Answer.request("GET", address.getPath(), address)
                        .replace("Connection: close\r\n", "");
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
