package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import dev.weft.fabric.World;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * All Java code on the pages compiles, with what the modules export and nothing else. Most of it is
 * a fragment: its names are declared here, and braces that it leaves open are closed.
 */
class DocumentedCodeTest {

    private static final String IMPORTS =
            """
            import dev.weft.compat.*;
            import dev.weft.cuda.*;
            import dev.weft.cuda.op.*;
            import dev.weft.fabric.*;
            import dev.weft.op.*;
            import dev.weft.trace.*;
            import dev.weft.plan.*;
            import dev.weft.plan.group.*;
            import dev.weft.plan.step.*;
            import dev.weft.predict.*;
            import dev.weft.tensor.*;
            import dev.weft.tensor.ScaledMatrix.Scaling;
            import java.lang.foreign.*;
            import java.time.Duration;
            import java.util.*;
            """;

    /** By page, or by page and number of the fragment: the names that it uses. */
    private static final Map<String, String> NAMES =
            Map.ofEntries(
                    Map.entry("algorithms", "GatherRequest request; Chunks chunks; int ranks;"),
                    Map.entry("algorithms 2", "ReductionRequest request;"),
                    Map.entry("cluster", ""),
                    Map.entry(
                            "compat-ascend",
                            "Fabric fabric; Shards shards; Matrix b, shard; int computeBlocks,"
                                    + " commBlocks;"),
                    Map.entry(
                            "compat-fgcc",
                            "Fabric world; Matrix lhs, rhs; int tpDegree, numGroups, r, l, ch, i;"
                                    + " boolean forceHbmCc; long m, k; FgccConfig config;"),
                    Map.entry(
                            "compat-gather",
                            "Fabric world; Matrix inp, mine; int tpDegree, lnc; long m, k;"
                                    + " Sb2sbConfig config;"),
                    Map.entry(
                            "compat-helion",
                            "Fabric fabric; MemorySegment words; long m, k; int splits;"
                                    + " Matrix b, c, aOut; boolean bTransposed;"
                                    + " HelionProgress progress; Helion.Config config;"),
                    Map.entry(
                            "compat-helion 2",
                            "Fabric fabric; int splits; HelionShared<Matrix> a; Matrix b, output;"
                                    + " boolean bTransposed; HelionProgress progress;"),
                    Map.entry(
                            "compat-helion 3",
                            "Fabric fabric; long m, k; int splits; DeviceMatrix b, aOut;"
                                    + " boolean bTransposed; DeviceProgress progress;"
                                    + " GpuStream stream;"),
                    Map.entry("compat-ring", "Fabric fabric; long m; Matrix columnsOfB, rowsOfA;"),
                    Map.entry("epilogues", "Fabric fabric; Shards shards; Matrix b, bias;"),
                    Map.entry(
                            "epilogues 2",
                            "Fabric fabric; Shards rows, kParts;"
                                    + " Matrix residual, weight, ownRowsOfB;"),
                    Map.entry(
                            "epilogues 3",
                            "Fabric fabric; Shards shards; Matrix b, bias; Gpu gpu;"
                                    + " DeviceMatrix deviceMatrix;"),
                    Map.entry(
                            "experts",
                            "Fabric fabric; Shards tokens; Routes routes; Matrix x;"
                                    + " Matrix[] gates, ups, downs;"),
                    Map.entry("experts 2", "Fabric fabric; Shards most, to; Matrix rows;"),
                    Map.entry("fp8", "Fabric fabric; Shards shards; Matrix a, b; Arena arena;"),
                    Map.entry(
                            "fp8 2",
                            "Fabric fabric; Shards shards, kParts; ScaledMatrix weights;"
                                    + " Matrix a, ownRowsOfB, residual, weight;"),
                    Map.entry(
                            "gpu",
                            "Fabric fabric; Gpu gpu; Matrix weights, ownRowsOfB; GpuStream stream;"
                                    + " DeviceMatrix shard, ownColumnsOfA; int ranks; long k;"),
                    Map.entry("gpu 2", "Fabric fabric; Gpu gpu; Matrix b, other; int ranks;"),
                    Map.entry("gpu 3", "CudaAllGatherMatmul op; Matrix rows; GpuStream stream;"),
                    Map.entry(
                            "gpu 4",
                            "CudaAllGatherMatmul op; DeviceMatrix shard; GpuStream stream;"),
                    Map.entry("gpu 5", "Gpu gpu; CudaAllGatherMatmul op; GpuStream stream;"),
                    Map.entry(
                            "quantized",
                            "Fabric fabric; Shards shards; Matrix rows; Arena arena; long k;"),
                    Map.entry(
                            "quantized 2",
                            "Fabric fabric; Gpu gpu; Shards shards; QuantizedMatrix b;"
                                    + " DeviceMatrix rows;"),
                    Map.entry(
                            "service",
                            "int ranks, tokens; Fabric fabric; Object weights; Queue queue;"
                                    + " boolean served(World world) { return true; }"
                                    + " void answer(Object batch, Broadcast batches,"
                                    + " RankEncoder encoder) {}"
                                    + " interface Queue { boolean isClosedAndEmpty();"
                                    + " Object take(Duration idle); }"
                                    + " record Broadcast(Fabric f, int t) implements AutoCloseable {"
                                    + " void sendEnd() {} public void close() {}"
                                    + " Optional<List<int[]>> receive() { return null; } }"
                                    + " record RankEncoder(Fabric f, Object w, int t) implements"
                                    + " AutoCloseable { void encode(List<int[]> texts) {}"
                                    + " public void close() {} }"),
                    Map.entry(
                            "reliability",
                            "Matrix matrices; void serve(Fabric fabric, Matrix matrices) {}"),
                    Map.entry(
                            "tutorial-ring",
                            "int RANKS, M, K, N_LOCAL; Fabric fabric; Matrix rows, columns,"
                                    + " expected; RingAllGatherMatmul<Matrix> ring;"
                                    + " AllGatherMatmul operator;"
                                    + " long slowest(Fabric all, long ns) { return ns; }"),
                    Map.entry("tutorial", "int M, K, N; float[] b;"));

    @TempDir Path folder;

    private static String place(Class<?> type) {
        try {
            return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI())
                    .toString();
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static List<String> snippets(Path page) throws IOException {
        Matcher block = Pattern.compile("(?s)```java\n(.*?)```").matcher(Files.readString(page));
        return block.results().map(found -> found.group(1)).toList();
    }

    /** Whole programs and classes are as they are. */
    private static String whole(String page, int number, String name, String code) {
        if (code.startsWith("import ")) {
            return code;
        }
        String names = NAMES.getOrDefault(page + " " + number, NAMES.get(page));
        assertTrue(names != null, () -> page + ".md: which names does its code use?");
        String body = code.replace("{ ... }", "{}");
        String result = Pattern.compile("(?m)^return ").matcher(body).find() ? "Object" : "void";
        return IMPORTS
                + "class %s {\n%s\n%s code() throws Exception {\n%s%s}\n}\n"
                        .formatted(name, names, result, body, closing(body));
    }

    /** What closes the brackets that are left open. */
    private static String closing(String code) {
        Deque<String> open = new ArrayDeque<>();
        for (char c : code.replaceAll("//.*|\"[^\"]*\"", "").toCharArray()) {
            if (c == '{' || c == '(') {
                open.push(c == '{' ? "}" : ");");
            } else if (c == '}' || c == ')') {
                open.pop();
            }
        }
        return String.join("", open);
    }

    @Test
    void allCodeCompilesWithWhatIsExported() throws IOException {
        List<String> words =
                new ArrayList<>(
                        List.of(
                                "--module-path",
                                Stream.of(Helion.class, World.class, JsonFactory.class)
                                        .map(DocumentedCodeTest::place)
                                        .collect(Collectors.joining(File.pathSeparator)),
                                "--add-modules",
                                "dev.weft.compat",
                                "-proc:none",
                                "-nowarn",
                                "-d",
                                folder.resolve("classes").toString()));
        int sources = 0;
        try (Stream<Path> docs = Files.list(Path.of("..", "docs"))) {
            List<Path> pages = docs.filter(path -> path.toString().endsWith(".md")).toList();
            for (Path page : new TreeSet<>(Stream.concat(pages.stream(), readme()).toList())) {
                String title = page.getFileName().toString().replace(".md", "");
                int number = 0;
                for (String code : snippets(page)) {
                    number++;
                    String name = title.replace('-', '_') + "_" + number;
                    Matcher type = Pattern.compile("public final class (\\w+)").matcher(code);
                    String file = type.find() ? type.group(1) : name;
                    Path source = folder.resolve(file + ".java");
                    Files.writeString(source, whole(title, number, name, code));
                    words.add(source.toString());
                    sources++;
                }
            }
        }
        StringWriter told = new StringWriter();
        PrintWriter printer = new PrintWriter(told);
        ToolProvider javac = ToolProvider.findFirst("javac").orElseThrow();
        int code = javac.run(printer, printer, words.toArray(String[]::new));
        assertEquals(0, code, told::toString);
        assertTrue(sources > 20, sources + " sources");
    }

    private static Stream<Path> readme() {
        return Stream.of(Path.of("..", "README.md"));
    }
}
