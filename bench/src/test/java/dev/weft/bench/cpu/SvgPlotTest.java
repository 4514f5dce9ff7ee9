package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;

class SvgPlotTest {

    @TempDir Path folder;

    private static SvgPlot plot(String words) {
        return new SvgPlot(
                words,
                words,
                words,
                Map.of(words, Map.of(1, 1.0, 2, 0.25, 64, 1.9), "one point", Map.of(4, 0.0)));
    }

    @Test
    void isWellFormedAndShowsEverything() throws Exception {
        String svg = plot("speed").svg();
        Document parsed =
                DocumentBuilderFactory.newInstance()
                        .newDocumentBuilder()
                        .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)));
        assertEquals(2, parsed.getElementsByTagName("polyline").getLength());
        for (String tick : List.of(">1<", ">2<", ">32<", ">64<", ">0<", ">0.5<", ">one point<")) {
            assertTrue(svg.contains(tick), tick + " in " + svg);
        }
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
    void writesAWholeFileAndNothingElse() throws IOException {
        Path file = folder.resolve("plots").resolve("speed.svg");
        plot("first").write(file);
        plot("second").write(file);
        assertTrue(Files.readString(file).endsWith("</svg>\n"));
        try (Stream<Path> files = Files.list(file.getParent())) {
            assertEquals(List.of(file), files.toList());
        }
    }
}
