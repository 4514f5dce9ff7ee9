package dev.weft.bench;

import dev.weft.files.AtomicFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * A plot of a few lines as an SVG picture: x by powers of two, y from zero on. Immutable; any
 * thread may call it.
 */
record SvgPlot(String title, String xLabel, String yLabel, List<Series> series) {

    private static final int WIDTH = 720;
    private static final int HEIGHT = 440;
    static final int LEFT = 70;
    static final int RIGHT = 560;
    static final int TOP = 50;
    static final int BOTTOM = 370;
    private static final int LEGEND_STEP = 22;

    /** Told apart also by most who see few colours. */
    private static final List<String> COLOURS =
            List.of("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b58900");

    /** A place on a line. {@code x} is above zero, {@code y} not below. */
    record Point(double x, double y) {}

    /** One line with its name in the legend. */
    record Series(String name, List<Point> points) {

        Series {
            points = List.copyOf(points);
        }
    }

    SvgPlot {
        series = List.copyOf(series);
        for (Series line : series) {
            for (Point point : line.points()) {
                if (!(point.x() > 0 && point.y() >= 0 && Double.isFinite(point.x() + point.y()))) {
                    throw new IllegalArgumentException(
                            line.name() + ": " + point + ": expected x above 0 and y from 0 on");
                }
            }
        }
        if (series.stream().allMatch(line -> line.points().isEmpty())) {
            throw new IllegalArgumentException(title + ": no points, expected at least one");
        }
    }

    /** Writes the picture, whole or not at all; makes the folder. */
    void write(Path file) throws IOException {
        Path target = file.toAbsolutePath();
        Files.createDirectories(target.getParent());
        AtomicFile.write(target, svg());
    }

    String svg() {
        PlotScale scale = PlotScale.of(series);
        StringBuilder svg = new StringBuilder();
        add(
                svg,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
                        + " viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">",
                WIDTH,
                HEIGHT,
                WIDTH,
                HEIGHT);
        add(svg, "<rect width=\"%d\" height=\"%d\" fill=\"#fcfcfa\"/>", WIDTH, HEIGHT);
        text(svg, LEFT, TOP - 22, "font-size=\"15\" font-weight=\"bold\"", title);
        grid(svg, scale);
        for (int i = 0; i < series.size(); i++) {
            line(svg, scale, series.get(i), COLOURS.get(i % COLOURS.size()), i);
        }
        return svg.append("</svg>\n").toString();
    }

    private void grid(StringBuilder svg, PlotScale scale) {
        for (int power = scale.firstPower(); power <= scale.lastPower(); power++) {
            double x = scale.x(Math.scalb(1.0, power));
            stroke(svg, x, TOP, x, BOTTOM);
            text(svg, x, BOTTOM + 20, "text-anchor=\"middle\"", number(Math.scalb(1.0, power)));
        }
        for (int tick = 0; tick <= scale.ticks(); tick++) {
            double y = scale.y(tick * scale.step());
            stroke(svg, LEFT, y, RIGHT, y);
            text(svg, LEFT - 8, y + 4, "text-anchor=\"end\"", number(tick * scale.step()));
        }
        double middleX = (LEFT + RIGHT) / 2.0;
        double middleY = (TOP + BOTTOM) / 2.0;
        text(svg, middleX, BOTTOM + 46, "text-anchor=\"middle\"", xLabel);
        String upright =
                format("text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\"", 22.0, middleY);
        text(svg, 22, middleY, upright, yLabel);
    }

    private static void line(
            StringBuilder svg, PlotScale scale, Series line, String colour, int index) {
        StringBuilder places = new StringBuilder();
        for (Point point : line.points()) {
            places.append(format("%.1f,%.1f ", scale.x(point.x()), scale.y(point.y())));
        }
        add(
                svg,
                "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>",
                places.toString().strip(),
                colour);
        for (Point point : line.points()) {
            dot(svg, scale.x(point.x()), scale.y(point.y()), colour);
        }
        double y = TOP + 10.0 + index * LEGEND_STEP;
        dot(svg, RIGHT + 24.0, y, colour);
        text(svg, RIGHT + 36.0, y + 4, "", line.name());
    }

    private static void dot(StringBuilder svg, double x, double y, String colour) {
        add(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>", x, y, colour);
    }

    private static void stroke(StringBuilder svg, double x1, double y1, double x2, double y2) {
        add(
                svg,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#d0d0cc\"/>",
                x1,
                y1,
                x2,
                y2);
    }

    private static void text(
            StringBuilder svg, double x, double y, String attributes, String words) {
        String more = attributes.isEmpty() ? "" : " " + attributes;
        add(
                svg,
                "<text x=\"%.1f\" y=\"%.1f\" fill=\"#222222\"%s>%s</text>",
                x,
                y,
                more,
                escape(words));
    }

    /** Ticks without needless decimals: 1, 0.2. */
    private static String number(double value) {
        return value == Math.rint(value)
                ? format("%.0f", value)
                : Double.toString(Math.round(value * 1e6) / 1e6);
    }

    static String escape(String text) {
        StringBuilder escaped = new StringBuilder();
        text.codePoints()
                .forEach(
                        character -> {
                            switch (character) {
                                case '&' -> escaped.append("&amp;");
                                case '<' -> escaped.append("&lt;");
                                case '>' -> escaped.append("&gt;");
                                case '"' -> escaped.append("&quot;");
                                default ->
                                        escaped.appendCodePoint(
                                                allowed(character) ? character : 0xFFFD);
                            }
                        });
        return escaped.toString();
    }

    /** XML has no way at all to write the others. */
    private static boolean allowed(int character) {
        return character == '\t'
                || character == '\n'
                || character == '\r'
                || character >= 0x20 && character <= 0xD7FF
                || character >= 0xE000 && character <= 0xFFFD
                || character >= 0x10000;
    }

    private static void add(StringBuilder svg, String format, Object... values) {
        svg.append(format(format, values)).append('\n');
    }

    /** Decimal points, whatever the user's language. */
    private static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
