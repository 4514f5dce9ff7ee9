package dev.weft.examples.service;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.CharConversionException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;

/** The service by HTTP on this host, each request on a virtual thread of its own. */
final class Http implements AutoCloseable {

    private static final JsonFactory JSON = new JsonFactory();
    private static final Duration TIMEOUT = Duration.ofMinutes(1);
    private static final int MOST_BYTES = 1 << 20;
    private static final int BACKLOG = 1024;
    private static final int SECONDS_TO_END = 10;

    private final Service service;
    private final HttpServer server;

    Http(Service service, int port) throws IOException {
        this.service = service;
        server =
                HttpServer.create(
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), port), BACKLOG);
        server.createContext("/embed", exchange -> respond(exchange, "POST", this::embed));
        server.createContext("/metrics", exchange -> respond(exchange, "GET", this::metrics));
        server.createContext("/health", exchange -> respond(exchange, "GET", this::health));
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    private record Answer(int code, String type, String body) {

        static Answer line(int code, String message) {
            return new Answer(code, "text/plain", message + "\n");
        }
    }

    private interface Handler {
        Answer answer(HttpExchange exchange) throws IOException;
    }

    private static void respond(HttpExchange exchange, String method, Handler handler)
            throws IOException {
        try (exchange) {
            Answer answer = answer(exchange, method, handler);
            exchange.getResponseHeaders().set("Content-Type", answer.type());
            if (answer.code() == 503) {
                exchange.getResponseHeaders().set("Retry-After", "1");
            }
            byte[] body = answer.body().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(answer.code(), body.length);
            exchange.getResponseBody().write(body);
            // What is left of the request: the server would count the exchange as under way.
            exchange.getRequestBody().skip(MOST_BYTES);
        }
    }

    private static Answer answer(HttpExchange exchange, String method, Handler handler)
            throws IOException {
        // The server also hands over paths that only begin like this one.
        String path = exchange.getRequestURI().getPath();
        if (!path.equals(exchange.getHttpContext().getPath())) {
            return Answer.line(404, path + ": expected /embed, /metrics or /health");
        }
        if (!exchange.getRequestMethod().equals(method)) {
            return Answer.line(405, exchange.getRequestMethod() + ": expected " + method);
        }
        return handler.answer(exchange);
    }

    private Answer metrics(HttpExchange exchange) {
        return new Answer(200, "text/plain", service.metrics().text());
    }

    private Answer health(HttpExchange exchange) {
        return service.isServing() ? Answer.line(200, "serving") : Answer.line(503, "not serving");
    }

    private Answer embed(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readNBytes(MOST_BYTES + 1);
        if (body.length > MOST_BYTES) {
            return Answer.line(413, "a request of more than %d bytes".formatted(MOST_BYTES));
        }
        try {
            float[][] embeddings = service.embed(texts(body), TIMEOUT);
            return new Answer(200, "application/json", Arrays.deepToString(embeddings));
        } catch (JsonProcessingException | CharConversionException | IllegalArgumentException e) {
            return Answer.line(400, e.getMessage().lines().findFirst().orElse("not JSON"));
        } catch (RejectedExecutionException e) {
            return Answer.line(503, e.getMessage());
        } catch (ExecutionException e) {
            return Answer.line(503, "a rank failed: try again");
        } catch (TimeoutException e) {
            return Answer.line(504, "no answer within %d s".formatted(TIMEOUT.toSeconds()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Answer.line(503, "the service is ending");
        }
    }

    private static List<String> texts(byte[] body) throws IOException {
        List<String> texts = new ArrayList<>();
        try (JsonParser parser = JSON.createParser(body)) {
            boolean right = parser.nextToken() == JsonToken.START_ARRAY;
            while (right && parser.nextToken() != JsonToken.END_ARRAY) {
                right = parser.currentToken() == JsonToken.VALUE_STRING;
                texts.add(parser.getText());
            }
            if (!right || texts.isEmpty() || parser.nextToken() != null) {
                throw new IllegalArgumentException(
                        "expected a JSON array of texts, as [\"one\", \"two\"]");
            }
        }
        return texts;
    }

    /** Once the requests under way have been answered. */
    @Override
    public void close() {
        server.stop(SECONDS_TO_END);
    }
}
