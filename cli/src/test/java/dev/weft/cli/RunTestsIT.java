package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** {@code weft test}, in a clone whose modules have one small test each, with the real Maven. */
@Execution(ExecutionMode.CONCURRENT)
class RunTestsIT {

    private static final Path CLONE = Path.of("").toAbsolutePath().getParent();

    private static final String MODULE =
            """
            <project>
              <modelVersion>4.0.0</modelVersion>
              <parent>
                <groupId>dev.weft</groupId>
                <artifactId>weft-parent</artifactId>
                <version>%s</version>
              </parent>
              <artifactId>%s</artifactId>
              <dependencies>
                <dependency>
                  <groupId>org.junit.jupiter</groupId>
                  <artifactId>junit-jupiter</artifactId>
                  <version>${junit.version}</version>
                  <scope>test</scope>
                </dependency>
                %s
              </dependencies>
            </project>
            """;

    @TempDir Path clone;

    private void module(String name, String dependency, String test) throws IOException {
        String parent = Files.readString(CLONE.resolve("pom.xml"));
        String version = parent.split("<version>")[1].split("<")[0];
        Path folder = Files.createDirectories(clone.resolve(name).resolve("src/test/java"));
        Files.writeString(
                clone.resolve(name).resolve("pom.xml"),
                MODULE.formatted(version, name, dependency.formatted(version)));
        Path main = Files.createDirectories(clone.resolve(name).resolve("src/main/java"));
        Files.writeString(main.resolve("Small.java"), "class Small {}");
        Files.writeString(
                folder.resolve("SmallTest.java"),
                "import org.junit.jupiter.api.*; class SmallTest { @Tag(\"gpu\") @Test void %s }"
                        .formatted(test));
        Files.writeString(
                clone.resolve("pom.xml"),
                parent.replaceFirst(
                        "(?s)<modules>.*?</modules>",
                        "<modules><module>library</module><module>cli</module><module>compat</module></modules>"));
    }

    private ChildProcess test() throws Exception {
        Files.copy(CLONE.resolve("weft"), clone.resolve("weft"));
        Files.createDirectory(clone.resolve("scripts"));
        for (String script :
                List.of("java.sh", "archive.sh", "build.sh", "test.sh", "summary.awk")) {
            Files.copy(CLONE.resolve("scripts/" + script), clone.resolve("scripts/" + script));
        }
        ChildProcess.Setup setup =
                ChildProcess.of(clone, List.of(clone.resolve("weft").toString(), "test", "--gpu"));
        Map<String, String> environment = setup.builder().environment();
        environment.keySet().removeIf(variable -> variable.startsWith("WEFT_"));
        String repository = System.getProperty("localRepository");
        if (repository != null && !repository.contains(" ")) {
            environment.put("MAVEN_OPTS", "-Dmaven.repo.local=" + repository);
        }
        return setup.run();
    }

    @Test
    void aFailedTestKeepsNoOtherModuleFromRunning() throws Exception {
        assumeTrue(
                ChildProcess.of(clone, List.of("sh", "-c", "command -v mvn")).run().code() == 0,
                "mvn is not on the PATH");
        module("library", "", "fails() { Assertions.assertEquals(1, 2, \"<one>\"); }");
        module(
                "cli",
                "<dependency><groupId>dev.weft</groupId><artifactId>library</artifactId>"
                        + "<version>%s</version></dependency>",
                "passes() {}");
        module("compat", "", "passesToo() {}");
        ChildProcess test = test();
        assertEquals(1, test.code(), test::toString);
        assertTrue(
                test.out()
                        .endsWith(
                                "\nFailed:\n  SmallTest.fails: <one> ==> expected: <1> but was: <2>\n"
                                        + "\nTests run: 3, Failures: 1, Errors: 0, Skipped: 0\n"),
                test::toString);
    }
}
