package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Who asks for something else, by another name or in another way, learns nothing. */
class PageServerRefusalsTest extends ServedPage {

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
}
