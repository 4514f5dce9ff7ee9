package dev.weft.report;

import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The report: one HTML file that contains its style, scripts, chart library and data, and loads
 * nothing from a network.
 */
public final class ReportPage {

    /** What a browser lets the page do; a server sends it too. */
    public static final String CONTENT_SECURITY_POLICY =
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
                    + " img-src data:; connect-src 'self'";

    private static final List<String> SCRIPTS =
            List.of(
                    "words spans bitmap rows timeline charts idle links run compare sweep main"
                            .split(" "));

    private ReportPage() {}

    /** Writes the page. */
    public static void write(PageData page, String weftVersion, Writer writer) throws IOException {
        String template = resource("page.html");
        int at = 0;
        for (int mark = template.indexOf("{{"); mark >= 0; mark = template.indexOf("{{", at)) {
            writer.write(template, at, mark - at);
            at = template.indexOf("}}", mark) + 2;
            content(template.substring(mark + 2, at - 2), page, weftVersion, writer);
        }
        writer.write(template, at, template.length() - at);
    }

    private static void content(String mark, PageData page, String weftVersion, Writer writer)
            throws IOException {
        switch (mark) {
            case "policy" -> writer.write(CONTENT_SECURITY_POLICY);
            case "title" -> writer.write(escaped(page.title()));
            case "style" -> writer.write(resource("page.css"));
            case "library" -> writer.write(resource("echarts.min.js"));
            case "script" -> writer.write(scripts());
            case "data" -> PageJson.write(page, weftVersion, writer);
            default -> throw new IllegalStateException("the page's template has {{" + mark + "}}");
        }
    }

    private static String scripts() throws IOException {
        StringBuilder all = new StringBuilder("(function () {\n'use strict';\n");
        for (String script : SCRIPTS) {
            all.append(resource(script + ".js"));
        }
        return all.append("})();\n").toString();
    }

    private static String escaped(String text) {
        // A lone surrogate becomes a question mark.
        return new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8)
                .replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;");
    }

    private static String resource(String name) throws IOException {
        try (InputStream in = ReportPage.class.getResourceAsStream("page/" + name)) {
            if (in == null) {
                throw new IOException("the report's " + name + " is not in this build");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
