package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The browser's client on pages that do what a report must not: it would be seen. */
class ChromiumIT extends InChromium {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    @TempDir Path folder;

    private Page page(String body) throws IOException {
        Path file = folder.resolve("page.html");
        Files.writeString(file, "<!doctype html><title>t</title><body>" + body);
        Page page = chromium.page();
        page.open(file.toUri());
        return page;
    }

    @Test
    void errorsOfEveryKindAreSeen() throws IOException {
        try (Page page =
                page(
                        "<script>console.error('told'); console.log('not this');</script>"
                                + "<script>throw new Error('thrown')</script>"
                                + "<script>Promise.reject(new Error('rejected'))</script>"
                                + "<img src='missing.png'>")) {
            page.awaitFrames();
            String all = page.consoleErrors().toString();
            for (String part : List.of("told", "thrown", "rejected", "missing.png")) {
                assertTrue(all.contains(part), part + " in " + all);
            }
            assertFalse(all.contains("not this"), all);
        }
    }

    @Test
    void whatThePolicyOfAPageForbidsIsAnError() throws IOException {
        try (Page page =
                page(
                        "<meta http-equiv='Content-Security-Policy' content=\"img-src 'none'\">"
                                + "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>")) {
            page.awaitFrames();
            assertEquals(1, page.consoleErrors().size(), page.consoleErrors().toString());
        }
    }

    @Test
    void requestsAreSeenButForThePageItself() throws IOException {
        try (Page quiet = page("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>")) {
            quiet.awaitFrames();
            assertEquals(List.of(), quiet.requests());
            assertEquals(List.of(), quiet.consoleErrors());
        }
        try (Page loud = page("<script src='http://127.0.0.1:9/a.js'></script>")) {
            assertEquals(List.of("http://127.0.0.1:9/a.js"), loud.requests());
        }
    }

    @Test
    void mouseWheelAndKeysArrive() throws IOException {
        String body =
                """
                <button style="margin-top: 3000px">b</button>
                <script>
                    const seen = [];
                    document.querySelector('button').onclick = () => seen.push('click');
                    document.onkeydown = event => seen.push(event.key);
                    document.addEventListener('wheel', event => {
                        if (event.ctrlKey) {
                            event.preventDefault();
                            seen.push('wheel' + event.deltaY);
                        }
                    }, {passive: false});
                </script>
                """;
        try (Page page = page(body)) {
            page.click("document.querySelector('button')");
            page.controlWheel(50, 50, -120);
            page.key("n");
            page.key("+");
            page.key("Escape");
            page.awaitTrue("seen.length == 5", LIMIT);
            assertEquals(List.of("click", "wheel-120", "n", "+", "Escape"), page.evaluate("seen"));
        }
    }

    @Test
    void mediaIsEmulatedAndPicturesEndWithThePage() throws IOException {
        try (Page page = page("<style>body {margin: 0}</style><div style='height: 321px'></div>")) {
            page.emulate("screen", "dark");
            assertTrue(page.isTrue("matchMedia('(prefers-color-scheme: dark)').matches"));
            page.emulate("print", "light");
            assertTrue(page.isTrue("matchMedia('print').matches"));
            assertFalse(page.isTrue("matchMedia('(prefers-color-scheme: dark)').matches"));
            page.emulate("screen", "light");
            assertEquals(List.of(640, 321), sizeOfPicture(page, 500));
            assertEquals(List.of(640, 200), sizeOfPicture(page, 200));
        }
    }

    /** From the header of a PNG file. */
    private List<Integer> sizeOfPicture(Page page, int mostHeight) throws IOException {
        Path file = folder.resolve("picture.png");
        page.screenshot(file, 640, mostHeight);
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
        assertEquals(0x89504e47, bytes.getInt(0), "a PNG file");
        return List.of(bytes.getInt(16), bytes.getInt(20));
    }

    @Test
    void whatDoesNotHappenIsAnErrorInTime() throws IOException {
        try (Page page = page("")) {
            assertEquals(7.5, page.number("Promise.resolve(7.5)"));
            assertThrows(
                    AssertionError.class, () -> page.awaitTrue("false", Duration.ofMillis(50)));
            assertThrows(IllegalStateException.class, () -> page.evaluate("nothing.at.all"));
            assertThrows(
                    IllegalStateException.class,
                    () -> page.open(folder.resolve("none.html").toUri()));
        }
    }

    @Test
    void nothingIsLeftOfABrowserThatWasClosed() throws IOException {
        List<ProcessHandle> tree;
        Path profile;
        try (Chromium other = Chromium.start()) {
            other.page().close();
            tree = other.processes();
            profile = other.profile();
            assertTrue(tree.size() > 2 && Files.isDirectory(profile));
        }
        assertEquals(List.of(), tree.stream().filter(ProcessHandle::isAlive).toList());
        assertFalse(Files.exists(profile));
    }
}
