package dev.weft.cli.view;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.weft.cli.console.Version;
import dev.weft.report.PageData;
import dev.weft.report.PageJson;
import dev.weft.report.ReportPage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/**
 * One page and its data over HTTP, only for this machine's browsers: it listens on loopback, its
 * address contains a random token, and a request must name this server as its host, since otherwise
 * a page from elsewhere could reach it under another name. It knows two addresses and reads no
 * file.
 *
 * <p>A client that sends half a request or does not read the answer costs little, and not for long:
 * all clients share one copy of an edition, connections are few, and both directions have a
 * deadline.
 */
final class PageServer implements AutoCloseable {

    /** What is served. Versions grow; the same version has the same data. */
    record Edition(long version, Supplier<PageData> page) {}

    private static final int TOKEN_BYTES = 16;
    private static final int USUAL_PORT = 80;
    private static final int WRONG_HOST = 421;

    /** Enough for several browser windows with six connections each; more are closed at once. */
    static final int MOST_CONNECTIONS = 64;

    /** The JDK's server keeps a buffer of twice the largest write for each connection. */
    static final int WRITE_BYTES = 1 << 16;

    private static final int REQUEST_SECONDS = 10;

    /** Includes making the page, which takes long for a large record. */
    private static final int ANSWER_SECONDS = 60;

    static {
        // Read once, by the first server of the process; there is no other way to set it.
        limit("jdk.httpserver.maxConnections", MOST_CONNECTIONS);
        limit("sun.net.httpserver.maxReqTime", REQUEST_SECONDS);
        limit("sun.net.httpserver.maxRspTime", ANSWER_SECONDS);
    }

    private final Supplier<Edition> editions;
    private final String path;
    private final HttpServer server;

    /** One thread for each request: an incomplete request does not keep others waiting. */
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();

    private final Shared pages = new Shared();
    private final Shared data = new Shared();

    private final AtomicLong servedVersion = new AtomicLong(-1);
    private volatile long askedNs = System.nanoTime();
    private volatile boolean asked;

    /** The newest edition in bytes, made once for all clients. */
    private static final class Shared {

        private long version = -1;
        private byte[] bytes;

        synchronized byte[] of(Edition edition, Form form) throws IOException {
            if (bytes == null || version != edition.version()) {
                ByteArrayOutputStream made = new ByteArrayOutputStream();
                try (Writer writer = new OutputStreamWriter(made, StandardCharsets.UTF_8)) {
                    form.write(edition.page().get(), Version.number(), writer);
                }
                bytes = made.toByteArray();
                version = edition.version();
            }
            return bytes;
        }
    }

    /** Writes a page, or only its data. */
    private interface Form {
        void write(PageData page, String weftVersion, Writer writer) throws IOException;
    }

    /** Keeps a value that the user has given to Java. */
    private static void limit(String property, int value) {
        if (System.getProperty(property) == null) {
            System.setProperty(property, Integer.toString(value));
        }
    }

    /** Listens on a port; 0 means any free one. */
    PageServer(int port, Supplier<Edition> editions) {
        this.editions = editions;
        byte[] token = new byte[TOKEN_BYTES];
        new SecureRandom().nextBytes(token);
        this.path = "/" + HexFormat.of().formatHex(token) + "/";
        try {
            this.server =
                    HttpServer.create(
                            new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot listen on loopback, port " + port + ": " + e.getMessage(), e);
        }
        server.createContext("/", this::answer);
        server.setExecutor(threads);
        server.start();
    }

    /** The address of the page. */
    String address() {
        return "http://" + host() + path;
    }

    private String host() {
        InetAddress loopback = server.getAddress().getAddress();
        String name = loopback.getHostAddress();
        return (name.contains(":") ? "[" + name + "]" : name) + ":" + port();
    }

    private int port() {
        return server.getAddress().getPort();
    }

    /** Whether there was a request within the last {@code withinNs} nanoseconds. */
    boolean hasReader(long withinNs) {
        return asked && System.nanoTime() - askedNs < withinNs;
    }

    /** The newest version that a page has received. */
    long servedVersion() {
        return servedVersion.get();
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            protect(exchange.getResponseHeaders());
            String asksFor = exchange.getRequestURI().getPath();
            if (!isForThisServer(exchange.getRequestHeaders().get("Host"))) {
                send(exchange, WRONG_HOST, "text/plain", "not a name of this server\n");
            } else if (!asksFor.equals(path) && !asksFor.equals(path + "data")) {
                send(exchange, HttpURLConnection.HTTP_NOT_FOUND, "text/plain", "nothing here\n");
            } else if (!exchange.getRequestMethod().equals("GET")) {
                exchange.getResponseHeaders().set("Allow", "GET");
                send(exchange, HttpURLConnection.HTTP_BAD_METHOD, "text/plain", "expected GET\n");
            } else {
                reads();
                give(exchange, asksFor.equals(path));
                // Again: a large page takes long.
                reads();
            }
        } catch (RuntimeException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.WARNING, "no page", e);
            throw e;
        }
    }

    private void reads() {
        askedNs = System.nanoTime();
        asked = true;
    }

    private static void protect(Headers headers) {
        headers.set("Content-Security-Policy", ReportPage.CONTENT_SECURITY_POLICY);
        headers.set("Cache-Control", "no-store");
        headers.set("Referrer-Policy", "no-referrer");
        headers.set("X-Content-Type-Options", "nosniff");
        headers.set("X-Frame-Options", "DENY");
        headers.set("Cross-Origin-Resource-Policy", "same-origin");
    }

    private boolean isForThisServer(List<String> hosts) {
        if (hosts == null || hosts.size() != 1) {
            return false;
        }
        Set<String> names = Set.of(host(), "localhost:" + port());
        // Browsers leave the usual port out.
        return names.contains(hosts.getFirst())
                || port() == USUAL_PORT && names.contains(hosts.getFirst() + ":" + USUAL_PORT);
    }

    private void give(HttpExchange exchange, boolean wholePage) throws IOException {
        Edition edition = editions.get();
        String tag = "\"" + edition.version() + "\"";
        exchange.getResponseHeaders().set("ETag", tag);
        if (!wholePage && tag.equals(exchange.getRequestHeaders().getFirst("If-None-Match"))) {
            exchange.sendResponseHeaders(HttpURLConnection.HTTP_NOT_MODIFIED, -1);
            return;
        }
        byte[] bytes =
                wholePage
                        ? pages.of(edition, ReportPage::write)
                        : data.of(edition, PageJson::write);
        send(
                exchange,
                HttpURLConnection.HTTP_OK,
                wholePage ? "text/html" : "application/json",
                bytes);
        // Only now is it on its way: a waiting thread may close the server.
        exchange.close();
        servedVersion.accumulateAndGet(edition.version(), Math::max);
    }

    private static void send(HttpExchange exchange, int code, String type, String text)
            throws IOException {
        send(exchange, code, type, text.getBytes(StandardCharsets.UTF_8));
    }

    private static void send(HttpExchange exchange, int code, String type, byte[] bytes)
            throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type + "; charset=utf-8");
        boolean headAlone = exchange.getRequestMethod().equals("HEAD");
        exchange.sendResponseHeaders(code, headAlone ? -1 : bytes.length);
        if (!headAlone) {
            write(bytes, exchange.getResponseBody());
        }
    }

    static void write(byte[] bytes, OutputStream to) throws IOException {
        for (int at = 0; at < bytes.length; at += WRITE_BYTES) {
            to.write(bytes, at, Math.min(WRITE_BYTES, bytes.length - at));
        }
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
