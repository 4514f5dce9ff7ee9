package dev.weft.cli.view;

import dev.weft.report.PageData;
import dev.weft.report.RecordMaker;
import java.io.IOException;
import java.net.URI;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;

/** A server of one page; over real sockets, since no client sends what an attacker would. */
abstract class ServedPage {

    static final long HOUR_NS = TimeUnit.HOURS.toNanos(1);

    static {
        // Read once per process. Where another test was first, the test of halves takes 10 s.
        System.setProperty("sun.net.httpserver.maxReqTime", "2");
        System.setProperty("sun.net.httpserver.clockTick", "500");
    }

    final AtomicLong version = new AtomicLong(3);
    final AtomicInteger made = new AtomicInteger();

    final PageServer server =
            new PageServer(0, () -> new PageServer.Edition(version.get(), this::page));

    final URI address = URI.create(server.address());

    private PageData page() {
        made.incrementAndGet();
        return PageData.of(new RecordMaker().label("<b>").shown());
    }

    @AfterEach
    void stop() {
        server.close();
    }

    Answer ask(String method, String path, String... moreHeaders) throws IOException {
        return Answer.to(address.getPort(), Answer.request(method, path, address, moreHeaders));
    }

    String token() {
        return address.getPath().replace("/", "");
    }
}
