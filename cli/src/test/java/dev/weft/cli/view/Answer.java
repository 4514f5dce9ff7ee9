package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

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
        return to(address.getPort(), request("GET", address.getRawPath(), address, moreHeaders));
    }

    static String request(String method, String path, URI address, String... moreHeaders) {
        StringBuilder request = new StringBuilder();
        request.append(method).append(' ').append(path).append(" HTTP/1.1\r\n");
        request.append("Host: ").append(address.getAuthority()).append("\r\n");
        request.append("Connection: close\r\n");
        for (String header : moreHeaders) {
            request.append(header).append("\r\n");
        }
        return request.append("\r\n").toString();
    }
}
