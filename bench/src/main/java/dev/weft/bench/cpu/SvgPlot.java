package dev.weft.bench.cpu;

import dev.weft.files.AtomicFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A plot of a few lines as an SVG picture, for pages that run no scripts: x by powers of two, y
 * from zero on. It is drawn here since ECharts, which draws the reports, needs a browser. The words
 * in it are the bench's own and need no escapes. Immutable; any thread may call it.
 *
 * @param lines by name, y by x; each x is a power of two
 */
record SvgPlot(
        String title, String xLabel, String yLabel, Map<String, Map<Integer, Double>> lines) {

    private static final int LEFT = 70;
    private static final int RIGHT = 560;
    private static final int TOP = 50;
    private static final int BOTTOM = 370;

    /** Told apart also by most who see few colours. */
    private static final List<String> COLOURS = List.of("#0072b2", "#d55e00", "#009e73");

    /** Writes the picture, whole or not at all; makes the folder. */
    void write(Path file) throws IOException {
        Path target = file.toAbsolutePath();
        Files.createDirectories(target.getParent());
        AtomicFile.write(target, svg());
    }

    String svg() {
        int lastPower =
                lines.values().stream()
                        .flatMap(line -> line.keySet().stream())
                        .mapToInt(Math::getExponent)
                        .max()
                        .orElseThrow();
        double highest =
                lines.values().stream()
                        .flatMap(line -> line.values().stream())
                        .mapToDouble(Double::doubleValue)
                        .max()
                        .orElseThrow();
        double step = step(highest);
        int ticks = (int) Math.ceil(highest / step);
        double xScale = (RIGHT - LEFT) / (double) Math.max(1, lastPower);
        double yScale = (BOTTOM - TOP) / (ticks * step);
        StringBuilder svg = new StringBuilder();
        svg.append(
                """
                <svg xmlns="http://www.w3.org/2000/svg" width="720" height="440" viewBox="0 0 720 440" \
                font-family="sans-serif" font-size="13">
                <rect width="720" height="440" fill="#fcfcfa"/>
                """);
        text(svg, LEFT, TOP - 22, "font-size=\"15\" font-weight=\"bold\"", title);
        for (int power = 0; power <= lastPower; power++) {
            double x = LEFT + power * xScale;
            add(svg, "<path d=\"M%.1f %d V%d\" stroke=\"#d0d0cc\"/>", x, TOP, BOTTOM);
            text(svg, x, BOTTOM + 20, "text-anchor=\"middle\"", "" + (1 << power));
        }
        for (int tick = 0; tick <= ticks; tick++) {
            double y = BOTTOM - tick * step * yScale;
            add(svg, "<path d=\"M%d %.1f H%d\" stroke=\"#d0d0cc\"/>", LEFT, y, RIGHT);
            text(svg, LEFT - 8, y + 4, "text-anchor=\"end\"", number(tick * step));
        }
        text(svg, (LEFT + RIGHT) / 2.0, BOTTOM + 46, "text-anchor=\"middle\"", xLabel);
        double middle = (TOP + BOTTOM) / 2.0;
        String upright = "text-anchor=\"middle\" transform=\"rotate(-90 22 " + middle + ")\"";
        text(svg, 22, middle, upright, yLabel);
        int index = 0;
        for (Map.Entry<String, Map<Integer, Double>> line : lines.entrySet()) {
            String colour = COLOURS.get(index % COLOURS.size());
            StringBuilder places = new StringBuilder();
            line.getValue()
                    .forEach(
                            (x, y) -> {
                                double atX = LEFT + Math.getExponent(x) * xScale;
                                double atY = BOTTOM - y * yScale;
                                add(places, "%.1f,%.1f", atX, atY);
                                dot(svg, atX, atY, colour);
                            });
            String form =
                    "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>";
            add(svg, form, places.toString().strip(), colour);
            double legendY = TOP + 10 + index * 22;
            dot(svg, RIGHT + 24, legendY, colour);
            text(svg, RIGHT + 36, legendY + 4, "", line.getKey());
            index++;
        }
        return svg.append("</svg>\n").toString();
    }

    /** 1, 2 or 5 times a power of ten, so that there are four to ten ticks. */
    private static double step(double highest) {
        double rough = Math.max(highest, 1e-9) / 5;
        double ten = Math.pow(10, Math.floor(Math.log10(rough)));
        double digit = rough / ten;
        return ten * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : 5);
    }

    private static void dot(StringBuilder svg, double x, double y, String colour) {
        add(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>", x, y, colour);
    }

    private static void text(StringBuilder svg, double x, double y, String more, String words) {
        add(svg, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#222222\" %s>%s</text>", x, y, more, words);
    }

    /** Ticks without needless decimals: 1, 0.2. */
    private static String number(double value) {
        return String.format(Locale.ROOT, "%.6f", value).replaceFirst("\\.?0+$", "");
    }

    /** Decimal points, whatever the user's language. */
    private static void add(StringBuilder svg, String form, Object... values) {
        svg.append(String.format(Locale.ROOT, form, values)).append('\n');
    }
}
