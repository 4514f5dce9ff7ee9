package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A trace read back, once it is certain that it keeps to the published Trace Event Format: the JSON
 * object format, with the phases that Weft uses.
 */
record TraceEvents(List<Map<String, Object>> events, Map<String, Object> otherData) {

    /** What the format lets events of a phase have; all else would be ignored by viewers. */
    private static final Map<String, Set<String>> FIELDS =
            Map.of(
                    "M", Set.of("ph", "name", "pid", "tid", "args"),
                    "X", Set.of("ph", "name", "pid", "tid", "cat", "ts", "dur", "args"),
                    "s", Set.of("ph", "name", "pid", "tid", "cat", "ts", "id"),
                    "f", Set.of("ph", "name", "pid", "tid", "cat", "ts", "id", "bp"));

    /** The metadata events of the format that Weft writes, and their only argument. */
    private static final Map<String, String> METADATA =
            Map.of(
                    "process_name", "name",
                    "process_sort_index", "sort_index",
                    "thread_name", "name",
                    "thread_sort_index", "sort_index");

    private record Worker(Object pid, Object tid) {}

    /** Viewers match both ends of an arrow by these. */
    private record ArrowKey(Object category, Object name, Object id) {}

    static TraceEvents checked(String json) throws IOException {
        Map<String, Object> top = object(JsonText.parse(json));
        assertEquals(Set.of("traceEvents", "displayTimeUnit", "otherData"), top.keySet());
        assertTrue(Set.of("ms", "ns").contains(top.get("displayTimeUnit")), "a unit it knows");
        List<Map<String, Object>> events = new ArrayList<>();
        for (Object event : assertInstanceOf(List.class, top.get("traceEvents"))) {
            events.add(object(event));
        }
        TraceEvents trace = new TraceEvents(events, object(top.get("otherData")));
        events.forEach(TraceEvents::checkFields);
        trace.checkNames();
        trace.checkSlices();
        trace.checkArrows();
        return trace;
    }

    private static void checkFields(Map<String, Object> event) {
        Object phase = event.get("ph");
        Set<String> fields = FIELDS.get(phase);
        assertNotNull(fields, () -> "phase of " + event);
        assertEquals(fields, event.keySet(), event::toString);
        assertInstanceOf(String.class, event.get("name"), event::toString);
        assertInstanceOf(Long.class, event.get("pid"), event::toString);
        assertInstanceOf(Long.class, event.get("tid"), event::toString);
        if (!phase.equals("M")) {
            assertInstanceOf(String.class, event.get("cat"), event::toString);
            assertTrue(number(event, "ts") >= 0, event::toString);
        }
        switch (phase.toString()) {
            case "M" -> {
                String argument = METADATA.get(event.get("name"));
                assertEquals(Set.of(argument), arguments(event).keySet(), event::toString);
                Class<?> type = argument.equals("name") ? String.class : Long.class;
                assertInstanceOf(type, arguments(event).get(argument), event::toString);
            }
            case "X" -> {
                assertTrue(number(event, "dur") >= 0, event::toString);
                arguments(event);
            }
            default -> {
                assertInstanceOf(Long.class, event.get("id"), event::toString);
                assertTrue(phase.equals("s") || event.get("bp").equals("e"), event::toString);
            }
        }
    }

    /** Each process and each thread has one name, and nothing happens where there is none. */
    private void checkNames() {
        Set<Object> processes = new HashSet<>();
        Set<Worker> threads = new HashSet<>();
        for (Map<String, Object> event : of("M")) {
            if (event.get("name").equals("process_name")) {
                assertTrue(processes.add(event.get("pid")), event::toString);
            } else if (event.get("name").equals("thread_name")) {
                assertTrue(threads.add(worker(event)), event::toString);
            }
        }
        for (Map<String, Object> event : events) {
            assertTrue(processes.contains(event.get("pid")), event::toString);
            assertTrue(event.get("ph").equals("M") || threads.contains(worker(event)));
        }
    }

    /** In nanoseconds, as viewers have them: microseconds read as doubles, the rest cut off. */
    private static long viewerNs(Map<String, Object> event, String field) {
        return (long) (number(event, field) * 1000.0);
    }

    /** Slices of a thread would have to nest; those of a worker follow each other. */
    private void checkSlices() {
        Map<Worker, Long> ends = new HashMap<>();
        for (Map<String, Object> event : of("X")) {
            long start = viewerNs(event, "ts");
            Long end = ends.put(worker(event), start + viewerNs(event, "dur"));
            assertTrue(end == null || start >= end, () -> event + " begins before " + end);
        }
    }

    private void checkArrows() {
        Map<ArrowKey, Map<String, Object>> beginnings = new HashMap<>();
        for (Map<String, Object> event : of("s")) {
            assertNull(beginnings.put(key(event), event), () -> event + " is there twice");
            sliceAround(event);
        }
        for (Map<String, Object> event : of("f")) {
            Map<String, Object> beginning = beginnings.remove(key(event));
            assertNotNull(beginning, () -> event + " has no beginning, or ends twice");
            assertTrue(number(beginning, "ts") <= number(event, "ts"), event::toString);
            sliceAround(event);
        }
        assertEquals(Map.of(), beginnings, "arrows without an end");
    }

    private static ArrowKey key(Map<String, Object> event) {
        return new ArrowKey(event.get("cat"), event.get("name"), event.get("id"));
    }

    /**
     * The slice to which viewers bind one end of an arrow: that around it, and of two that meet
     * there the latest one written before it.
     */
    private Map<String, Object> sliceAround(Map<String, Object> arrow) {
        Map<String, Object> found = null;
        for (Map<String, Object> event : events) {
            if (event == arrow) {
                break;
            }
            double start = event.get("ph").equals("X") ? number(event, "ts") : Double.NaN;
            if (worker(event).equals(worker(arrow))
                    && start <= number(arrow, "ts")
                    && number(arrow, "ts") <= start + number(event, "dur") + 1e-9) {
                found = event;
            }
        }
        assertNotNull(found, () -> arrow + " lies in no slice");
        return found;
    }

    List<Map<String, Object>> of(String phase) {
        return events.stream().filter(event -> event.get("ph").equals(phase)).toList();
    }

    long ofCategory(String category) {
        return of("X").stream().filter(event -> event.get("cat").equals(category)).count();
    }

    /** The values of all metadata events of that name, in order. */
    List<Object> metadata(String name) {
        return of("M").stream()
                .filter(event -> event.get("name").equals(name))
                .map(event -> arguments(event).get(METADATA.get(name)))
                .toList();
    }

    /** As "name of a slice -> name of a slice", in the order of their ends. */
    List<String> arrows() {
        Map<ArrowKey, Map<String, Object>> beginnings = new HashMap<>();
        of("s").forEach(event -> beginnings.put(key(event), event));
        return of("f").stream()
                .map(
                        end ->
                                sliceAround(beginnings.get(key(end))).get("name")
                                        + " -> "
                                        + sliceAround(end).get("name"))
                .toList();
    }

    private static Worker worker(Map<String, Object> event) {
        return new Worker(event.get("pid"), event.get("tid"));
    }

    private static double number(Map<String, Object> event, String field) {
        return assertInstanceOf(Number.class, event.get(field), event::toString).doubleValue();
    }

    static Map<String, Object> arguments(Map<String, Object> event) {
        return object(event.get("args"));
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        return (Map<String, Object>) assertInstanceOf(Map.class, value);
    }
}
