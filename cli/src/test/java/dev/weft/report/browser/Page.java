package dev.weft.report.browser;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;

/**
 * One tab: what a user does to a page, and what the page did. Keeps every error that the console
 * told and every request from {@link #open} on. One thread may call it.
 */
final class Page implements AutoCloseable {

    private static final int CTRL = 2;
    private static final int DRAG_STEPS = 8;

    /** With the codes without which the browser itself does nothing on them. */
    private static final Map<String, Integer> NAMED_KEYS =
            Map.of("Tab", 9, "Enter", 13, "Escape", 27, "ArrowLeft", 37, "ArrowRight", 39);

    private final DevTools tools;
    private final String target;
    private final String session;
    private final Set<String> loaded = ConcurrentHashMap.newKeySet();
    private final List<String> consoleErrors = new CopyOnWriteArrayList<>();
    private final List<String> requests = new CopyOnWriteArrayList<>();

    Page(DevTools tools, String target, String session) {
        this.tools = tools;
        this.target = target;
        this.session = session;
        tools.listen(session, this::take);
        for (String domain : List.of("Page", "Runtime", "Log", "Network")) {
            call(domain + ".enable", Map.of());
        }
        call("Page.setLifecycleEventsEnabled", Map.of("enabled", true));
        size(1280, 900);
    }

    private Object call(String method, Map<String, ?> parameters) {
        return tools.call(session, method, parameters);
    }

    private void take(String method, Object event) {
        switch (method) {
            case "Page.lifecycleEvent" -> {
                if (Json.text(event, "name").equals("load")) {
                    loaded.add(Json.text(event, "loaderId"));
                }
            }
            case "Page.javascriptDialogOpening" -> consoleErrors.add("dialog " + event);
            case "Runtime.exceptionThrown" -> consoleErrors.add(event.toString());
            case "Runtime.consoleAPICalled" -> {
                if (Set.of("error", "assert").contains(Json.text(event, "type"))) {
                    consoleErrors.add(Json.at(event, "args").toString());
                }
            }
            case "Log.entryAdded" -> {
                if (Json.text(event, "entry", "level").equals("error")) {
                    consoleErrors.add(Json.at(event, "entry").toString());
                }
            }
            case "Network.requestWillBeSent" -> {
                // The page itself is the request that its loader is named after.
                String url = Json.text(event, "request", "url");
                boolean isPage = Json.text(event, "requestId").equals(Json.text(event, "loaderId"));
                if (!isPage && !url.startsWith("data:")) {
                    requests.add(url);
                }
            }
            default -> {}
        }
    }

    /** Errors that the console told, and exceptions that nobody caught. */
    List<String> consoleErrors() {
        return List.copyOf(consoleErrors);
    }

    /** Addresses that the page asked for, besides its own and {@code data:} ones. */
    List<String> requests() {
        return List.copyOf(requests);
    }

    /** Runs a script in every page that is opened from now on, before the page's own ones. */
    void beforeScripts(String script) {
        call("Page.addScriptToEvaluateOnNewDocument", Map.of("source", script));
    }

    /** Goes there and waits until it has loaded. */
    void open(URI address) {
        Object answer = call("Page.navigate", Map.of("url", address.toString()));
        if (Json.at(answer, "errorText") != null) {
            throw new IllegalStateException(address + ": " + Json.text(answer, "errorText"));
        }
        String loader = Json.text(answer, "loaderId");
        await(() -> loaded.contains(loader), DevTools.LIMIT, address + " has loaded");
    }

    /** Opens a report and waits until everything on it is drawn. */
    void openReport(URI address) {
        open(address);
        awaitTrue("window.weft?.ready === true", DevTools.LIMIT);
    }

    /** The value of an expression, or of the promise that it gives, as {@link Json} has it. */
    Object evaluate(String expression) {
        Object answer =
                call(
                        "Runtime.evaluate",
                        Map.of(
                                "expression",
                                expression,
                                "returnByValue",
                                true,
                                "awaitPromise",
                                true));
        if (Json.at(answer, "exceptionDetails") != null) {
            throw new IllegalStateException(expression + ": " + answer);
        }
        return Json.at(answer, "result", "value");
    }

    String text(String expression) {
        return (String) evaluate(expression);
    }

    double number(String expression) {
        return ((Number) evaluate(expression)).doubleValue();
    }

    boolean isTrue(String expression) {
        return Boolean.TRUE.equals(evaluate(expression));
    }

    /** Fails where the expression has not become true in time. */
    void awaitTrue(String expression, Duration limit) {
        await(() -> isTrue(expression), limit, expression);
    }

    private void await(BooleanSupplier condition, Duration limit, String what) {
        long until = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > until) {
                throw new AssertionError(
                        "not within " + limit + ": " + what + "; console: " + consoleErrors);
            }
            pause();
        }
    }

    private static void pause() {
        try {
            Thread.sleep(5);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }

    void hover(double x, double y) {
        mouse("mouseMoved", x, y, Map.of());
    }

    /** Where an element is in the window. */
    record Box(double x, double y, double width, double height) {

        double middleX() {
            return x + width / 2;
        }

        double middleY() {
            return y + height / 2;
        }
    }

    /**
     * Scrolls an element into view, and waits until the page knows.
     *
     * @param element an expression that gives it
     */
    Box scrollTo(String element) {
        evaluate(element + ".scrollIntoView({block: 'center'})");
        awaitFrames();
        Object box = evaluate(element + ".getBoundingClientRect().toJSON()");
        return new Box(
                Json.number(box, "x"),
                Json.number(box, "y"),
                Json.number(box, "width"),
                Json.number(box, "height"));
    }

    /** Clicks the middle of an element, which is scrolled into view. */
    void click(String element) {
        Box box = scrollTo(element);
        double x = box.middleX();
        double y = box.middleY();
        hover(x, y);
        mouse("mousePressed", x, y, Map.of("button", "left", "clickCount", 1));
        mouse("mouseReleased", x, y, Map.of("button", "left", "clickCount", 1));
    }

    /** Holds the left button down from one point to another on the same line. */
    void drag(double fromX, double toX, double y) {
        hover(fromX, y);
        mouse("mousePressed", fromX, y, Map.of("button", "left", "clickCount", 1));
        for (int step = 1; step <= DRAG_STEPS; step++) {
            double x = fromX + (toX - fromX) * step / DRAG_STEPS;
            mouse("mouseMoved", x, y, Map.of("button", "left", "buttons", 1));
        }
        mouse("mouseReleased", toX, y, Map.of("button", "left", "clickCount", 1));
    }

    /** Turns the wheel with the control key held; up, which is negative, zooms in. */
    void controlWheel(double x, double y, double down) {
        mouse("mouseWheel", x, y, Map.of("deltaX", 0, "deltaY", down, "modifiers", CTRL));
    }

    private void mouse(String type, double x, double y, Map<String, ?> more) {
        Map<String, Object> event = new HashMap<>(more);
        event.put("type", type);
        event.put("x", x);
        event.put("y", y);
        call("Input.dispatchMouseEvent", event);
    }

    /** Presses and releases a key: a character, or one of {@link #NAMED_KEYS}. */
    void key(String key) {
        Map<String, Object> event = new HashMap<>(Map.of("type", "keyDown", "key", key));
        if (NAMED_KEYS.containsKey(key)) {
            event.put("windowsVirtualKeyCode", NAMED_KEYS.get(key));
        } else {
            event.put("text", key);
        }
        call("Input.dispatchKeyEvent", event);
        event.put("type", "keyUp");
        event.remove("text");
        call("Input.dispatchKeyEvent", event);
    }

    void size(int width, int height) {
        call(
                "Emulation.setDeviceMetricsOverride",
                Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", false));
    }

    /**
     * @param media screen or print
     * @param scheme light or dark
     */
    void emulate(String media, String scheme) {
        call(
                "Emulation.setEmulatedMedia",
                Map.of(
                        "media",
                        media,
                        "features",
                        List.of(Map.of("name", "prefers-color-scheme", "value", scheme))));
    }

    /** Returns when what was changed before has been drawn. */
    void awaitFrames() {
        evaluate(
                "new Promise(drawn => requestAnimationFrame(() =>"
                        + " requestAnimationFrame(() => setTimeout(drawn, 0))))");
    }

    /** A picture of the page from its top, down to its end but at most that far. */
    void screenshot(Path file, int width, int mostHeight) throws IOException {
        size(width, mostHeight);
        awaitFrames();
        double end = number("document.documentElement.getBoundingClientRect().height");
        Map<String, ?> clip =
                Map.of(
                        "x",
                        0,
                        "y",
                        0,
                        "width",
                        width,
                        "height",
                        Math.min(Math.ceil(end), mostHeight),
                        "scale",
                        1);
        Object answer = call("Page.captureScreenshot", Map.of("format", "png", "clip", clip));
        Files.write(file, Base64.getDecoder().decode(Json.text(answer, "data")));
    }

    /** As a literal of JavaScript. */
    static String quoted(String text) {
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
    }

    @Override
    public void close() {
        tools.call(null, "Target.closeTarget", Map.of("targetId", target));
    }
}
