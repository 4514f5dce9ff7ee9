package dev.weft.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SvgPlotTest {

    /** Text, or a tag with quoted attributes; what these do not cover is no XML. */
    private static final Pattern PIECE =
            Pattern.compile(
                    "(?<text>[^<>]+)|</(?<close>\\w+)>"
                            + "|<(?<open>\\w+)(?:\\s+[\\w-]+=\"[^\"<>]*\")*(?<empty>/?)>");

    private static final Pattern BARE_AMPERSAND = Pattern.compile("&(?!(amp|lt|gt|quot);)");

    @TempDir Path folder;

    private static SvgPlot plot(String words) {
        return new SvgPlot(
                words,
                words,
                words,
                List.of(
                        new SvgPlot.Series(
                                words, List.of(point(1, 1), point(2, 0.25), point(64, 1.9))),
                        new SvgPlot.Series("one point", List.of(point(3, 0)))));
    }

    private static SvgPlot.Point point(double x, double y) {
        return new SvgPlot.Point(x, y);
    }

    private static void assertWellFormed(String svg) {
        assertFalse(BARE_AMPERSAND.matcher(svg).find(), svg);
        Deque<String> open = new ArrayDeque<>();
        Matcher pieces = PIECE.matcher(svg);
        int at = 0;
        while (at < svg.length()) {
            assertTrue(pieces.find(at) && pieces.start() == at, "no XML at " + svg.substring(at));
            at = pieces.end();
            if (pieces.group("close") != null) {
                assertEquals(open.pop(), pieces.group("close"));
            } else if (pieces.group("open") != null && pieces.group("empty").isEmpty()) {
                open.push(pieces.group("open"));
            }
        }
        assertTrue(open.isEmpty(), "left open: " + open);
    }

    @Test
    void isWellFormedAndShowsEverything() {
        String svg = plot("speed").svg();
        assertWellFormed(svg);
        assertTrue(svg.startsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""), svg);
        assertEquals(2, svg.split("<polyline", -1).length - 1);
        for (String tick : List.of(">1<", ">2<", ">32<", ">64<", ">0<", ">0.5<", ">one point<")) {
            assertTrue(svg.contains(tick), tick + " in " + svg);
        }
    }

    @Test
    void escapesText() {
        String svg = plot("a < b & \"c\" > d \u0001 \u00e9").svg();
        assertWellFormed(svg);
        assertTrue(svg.contains("a &lt; b &amp; &quot;c&quot; &gt; d \ufffd \u00e9<"), svg);
    }

    @Test
    void writesDecimalPointsInEveryLanguage() {
        Locale before = Locale.getDefault();
        try {
            Locale.setDefault(Locale.GERMANY);
            assertTrue(plot("speed").svg().contains(">0.5<"));
        } finally {
            Locale.setDefault(before);
        }
    }

    @Test
    void refusesWhatItCannotShow() {
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        new SvgPlot(
                                "t",
                                "x",
                                "y",
                                List.of(new SvgPlot.Series("s", List.of(point(0, 1))))));
        assertThrows(IllegalArgumentException.class, () -> new SvgPlot("t", "x", "y", List.of()));
    }

    @Test
    void writesAWholeFileAndNothingElse() throws IOException {
        Path file = folder.resolve("plots").resolve("speed.svg");
        plot("first").write(file);
        plot("second").write(file);
        assertEquals(plot("second").svg(), Files.readString(file));
        try (Stream<Path> files = Files.list(file.getParent())) {
            assertEquals(List.of(file), files.toList());
        }
    }
}
