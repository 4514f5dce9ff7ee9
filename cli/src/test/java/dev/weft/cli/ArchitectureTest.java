package dev.weft.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static java.util.Map.entry;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Dependencies between the command's packages point one way. A new package needs its line here. */
class ArchitectureTest {

    private static final String ROOT = "dev.weft.cli";
    private static final String REPORT = "dev.weft.report";
    private static final String BENCH = ROOT + ".bench";
    private static final int MOST_FILES = 40;

    /** A package, and which of the others it may use; {@code dev.weft.cli} itself may use all. */
    private static final Map<String, Set<String>> MAY_USE =
            Map.ofEntries(
                    entry(
                            "run",
                            Set.of(
                                    "simulate",
                                    "verify",
                                    "view",
                                    "launch",
                                    "diagnosis",
                                    "data",
                                    "message",
                                    "options",
                                    "console")),
                    entry("simulate", Set.of("view", "data", "options", "console")),
                    entry("verify", Set.of("view", "data", "options", "console")),
                    entry("view", Set.of("data", "options", "console")),
                    entry("launch", Set.of("diagnosis", "message", "options", "console")),
                    entry("diagnosis", Set.of("message", "console")),
                    entry("data", Set.of("options", "console")),
                    entry("options", Set.of("console")),
                    entry("message", Set.of("console")),
                    entry("console", Set.of()));

    private static final JavaClasses COMMAND =
            new ClassFileImporter()
                    .importUrl(Main.class.getProtectionDomain().getCodeSource().getLocation());

    static Stream<String> packages() {
        return MAY_USE.keySet().stream().sorted();
    }

    @Test
    void everyPackageHasItsLine() {
        Set<String> found =
                COMMAND.stream()
                        .map(JavaClass::getPackageName)
                        .filter(name -> name.startsWith(ROOT + ".") && !name.startsWith(BENCH))
                        .map(name -> name.substring(ROOT.length() + 1))
                        .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(new TreeSet<>(MAY_USE.keySet()), found);
    }

    @ParameterizedTest
    @MethodSource("packages")
    void aPackageUsesOnlyThoseBelowIt(String name) {
        rule(name, MAY_USE.get(name)).check(COMMAND);
    }

    /** Without this the rules could hold because they look at nothing. */
    @Test
    void aDependencyThatIsNotAllowedIsFound() {
        for (String used : List.of("simulate", "verify", "view", "launch", "data", "options")) {
            Set<String> others = new TreeSet<>(MAY_USE.get("run"));
            others.remove(used);
            assertTrue(rule("run", others).evaluate(COMMAND).hasViolation(), used);
        }
    }

    @Test
    void recordsDependOnNoCommand() {
        noClasses()
                .that()
                .resideInAPackage(REPORT + "..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage(ROOT + "..")
                .check(COMMAND);
    }

    @Test
    void aPackageFitsOnAScreen() {
        Map<String, Long> files =
                COMMAND.stream()
                        .filter(type -> type.isTopLevelClass() && !isBench(type))
                        .collect(
                                Collectors.groupingBy(
                                        JavaClass::getPackageName,
                                        TreeMap::new,
                                        Collectors.counting()));
        assertTrue(files.values().stream().allMatch(count -> count <= MOST_FILES), files::toString);
    }

    private static boolean isBench(JavaClass type) {
        return type.getPackageName().startsWith(BENCH);
    }

    private static ArchRule rule(String name, Set<String> below) {
        String[] others =
                Stream.concat(
                                Stream.of(ROOT, BENCH + ".."),
                                packages()
                                        .filter(one -> !one.equals(name) && !below.contains(one))
                                        .map(one -> ROOT + "." + one))
                        .toArray(String[]::new);
        return noClasses()
                .that()
                .resideInAPackage(ROOT + "." + name)
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(others);
    }
}
