package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** What a run record says, read without Weft's own reader, and whether a page says the same. */
final class Report {

    static final String DATA = "JSON.parse(document.getElementById('weft-data').textContent)";

    private static final double EPSILON = 1e-9;

    private final Object record;

    /** A span with its number on the page. */
    record Span(int number, int rank, String track, Object fields) {

        String kind() {
            return Json.text(fields, "kind");
        }

        long of(String name) {
            return (Long) Json.at(fields, name);
        }

        long ns() {
            return of("endNs") - of("startNs");
        }
    }

    private Report(Object record) {
        this.record = record;
    }

    static Report of(Path file) throws IOException {
        return new Report(Json.parse(Files.readString(file)));
    }

    double number(Object... path) {
        return Json.number(record, path);
    }

    /** Numbered through ranks, tracks and time, as on the page. */
    List<Span> spans() {
        List<Span> spans = new ArrayList<>();
        for (Object rank : Json.list(record, "ranks")) {
            for (Object track : Json.list(rank, "tracks")) {
                for (Object fields : Json.list(track, "spans")) {
                    int number = (int) Json.number(rank, "rank");
                    spans.add(new Span(spans.size(), number, Json.text(track, "name"), fields));
                }
            }
        }
        return spans;
    }

    /** The longest one of a kind: its middle is farthest from other spans. */
    Span longest(String kind) {
        return spans().stream()
                .filter(span -> span.kind().equals(kind))
                .max(Comparator.comparingLong(Span::ns))
                .orElseThrow();
    }

    /** Every figure and median on the page of this one run, and the samples behind it. */
    void assertShownOn(Page page) {
        for (String fact : List.of("speedup", "overlapEfficiency", "limitFraction", "tflops")) {
            assertShown(page, "[data-fact=\"" + fact + "\"]", Json.at(record, fact));
        }
        for (String view : List.of("computeOnly", "commOnly", "sequential", "pipelined")) {
            Object median = Json.at(record, "views", view, "medianUs");
            assertShown(page, "[data-view=\"" + view + "\"]", median);
            assertEquals(
                    Json.list(record, "views", view, "samplesUs").size(),
                    page.number(
                            "Number(document.querySelector('[data-view="
                                    + view
                                    + "]').parentElement.lastElementChild.textContent"
                                    + ".replaceAll(',', ''))"),
                    view);
        }
    }

    /** What could not be measured has words and no value. */
    private static void assertShown(Page page, String selector, Object expected) {
        String element = "document.querySelector(" + Page.quoted(selector) + ")";
        assertFalse(page.text(element + ".textContent").isBlank(), selector);
        String shown = page.text(element + ".dataset.value");
        if (expected == null) {
            assertEquals("", shown, selector);
        } else {
            double number = ((Number) expected).doubleValue();
            assertEquals(number, Double.parseDouble(shown), EPSILON * number, selector);
        }
    }
}
