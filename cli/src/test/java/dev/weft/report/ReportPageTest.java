package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.StringWriter;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The file as a browser takes it apart, without a browser. */
class ReportPageTest {

    private static final Pattern DATA =
            Pattern.compile(
                    "<script id=\"weft-data\" type=\"application/json\">(.*?)</script",
                    Pattern.DOTALL | Pattern.CASE_INSENSITIVE);

    private static String page(PageData page) throws IOException {
        StringWriter text = new StringWriter();
        ReportPage.write(page, "9.9", text);
        return text.toString();
    }

    private static String page() throws IOException {
        return page(PageData.of(new RecordMaker().shown()));
    }

    private static int count(String text, String regex) {
        Matcher matcher = Pattern.compile(regex, Pattern.CASE_INSENSITIVE).matcher(text);
        return (int) matcher.results().count();
    }

    /** What stands outside of scripts and styles, which hold no markup of the page. */
    private static String markup(String page) {
        return Pattern.compile("(<(script|style)\\b[^>]*>).*?(</\\2)", Pattern.DOTALL)
                .matcher(page)
                .replaceAll("$1$3");
    }

    @Test
    void isOneDocument() throws IOException {
        String page = page();
        assertTrue(page.startsWith("<!DOCTYPE html>\n<html lang=\"en\">"), page.substring(0, 60));
        assertTrue(page.stripTrailing().endsWith("</html>"));
        String markup = markup(page);
        for (String element : List.of("html", "head", "body", "title", "main", "style")) {
            assertEquals(1, count(markup, "<" + element + "\\b"), element);
            assertEquals(1, count(markup, "</" + element + ">"), element);
        }
        assertEquals(3, count(markup, "<script\\b"), "data, library and the page's own");
        assertEquals(3, count(markup, "</script>"));
        assertFalse(markup.contains("{{"), "no mark is left");
    }

    @Test
    void holdsItsStyleLibraryScriptsAndData() throws IOException {
        String page = page();
        assertTrue(page.contains("Licensed to the Apache Software Foundation"), "the library");
        assertTrue(page.contains("(function () {\n'use strict';\n"), "the page's own");
        assertTrue(page.contains("Content-Security-Policy"), "no network even by mistake");
        assertTrue(page.contains("default-src 'none'"), "no network even by mistake");
        Matcher data = DATA.matcher(page);
        assertTrue(data.find());
        assertEquals("run", JsonText.at(JsonText.parse(data.group(1)), "kind"));
        assertFalse(data.find(), "once");
    }

    @Test
    void refersToNothingThatABrowserWouldLoad() throws IOException {
        String page = page();
        String markup = markup(page);
        assertEquals(0, count(markup, "\\bsrc\\s*="), "nothing is loaded");
        for (String link : references(markup)) {
            assertTrue(link.startsWith("data:") || link.startsWith("#"), link);
        }
        assertEquals(0, count(page, "(src|href|action|poster)\\s*=\\s*[\"']?\\s*(https?:)?//"));
        assertEquals(0, count(page, "url\\(\\s*[\"']?\\s*(https?:)?//"), "in the style");
        assertEquals(0, count(page, "@import"), "in the style");
        assertEquals(0, count(page, "\\bimport\\s*\\(\\s*[\"'](https?:)?//"), "in scripts");
    }

    private static List<String> references(String markup) {
        return Pattern.compile("\\bhref\\s*=\\s*\"([^\"]*)\"")
                .matcher(markup)
                .results()
                .map(found -> found.group(1))
                .toList();
    }

    @Test
    void htmlInALabelIsText() throws IOException {
        String label = "</title></script><script>alert('&amp;')</script><img src=x onerror=y>";
        String page = page(PageData.of(new RecordMaker().label(label).shown()));
        assertFalse(page.contains(label));
        assertFalse(page.contains("<img src=x"));
        assertEquals(3, count(markup(page), "<script\\b"));
        assertTrue(
                page.contains(
                        "<title>&lt;/title&gt;&lt;/script&gt;&lt;script&gt;alert('&amp;amp;')"),
                "the title is escaped");
        Matcher data = DATA.matcher(page);
        assertTrue(data.find());
        Object tree = JsonText.parse(data.group(1));
        assertEquals(label, JsonText.at(tree, "title"));
        assertEquals(label, JsonText.at(tree, "runs.0.name"));
    }

    /** Marks in a text are text: the template alone is filled in. */
    @Test
    void marksInALabelStay() throws IOException {
        String page = page(PageData.of(new RecordMaker().label("{{data}} $1 {{title}}").shown()));
        assertTrue(page.contains("<title>{{data}} $1 {{title}}</title>"));
        assertEquals(1, count(page, "id=\"weft-data\""));
    }

    @Test
    void everyKindOfPageIsOne() throws IOException {
        ShownRun run = new RecordMaker().shown();
        for (PageData page :
                List.of(
                        PageData.comparison(List.of(run, run)),
                        PageData.sweep("s", json -> json.writeStringField("machine", "m")),
                        PageData.of(run).live(new PageData.Progress("x", 0, 0, false, null)),
                        new PageData("none yet", null, List.of(), null))) {
            Matcher data = DATA.matcher(page(page));
            assertTrue(data.find());
            assertEquals(page.kind(), JsonText.at(JsonText.parse(data.group(1)), "kind"));
        }
    }
}
