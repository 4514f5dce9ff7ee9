package dev.weft.compat;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** What programs may use of this module, what that needs, and the example on its page. */
class ModuleTest {

    /** What programs may depend on. A new type needs its place here, and a reason to be used. */
    private static final Set<String> EXPORTED =
            Set.of(
                    "Ascend",
                    "DeviceProgress",
                    "Fgcc",
                    "FgccConfig",
                    "FgccResult",
                    "Helion",
                    "HelionCuda",
                    "HelionGather",
                    "HelionProgress",
                    "HelionResult",
                    "HelionShared",
                    "Place",
                    "RingAllGatherMatmul",
                    "Sb2sb",
                    "Sb2sbConfig",
                    "Sb2sbLayout");

    private static final JavaClasses CALLS =
            new ClassFileImporter()
                    .importUrl(Helion.class.getProtectionDomain().getCodeSource().getLocation())
                    .that(resideInAPackage("dev.weft.compat"));

    @Test
    void whatIsExportedIsListed() {
        assertEquals(
                new TreeSet<>(EXPORTED),
                CALLS.stream()
                        .filter(type -> type.isTopLevelClass())
                        .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                        .map(JavaClass::getSimpleName)
                        .collect(Collectors.toCollection(TreeSet::new)));
    }

    @Test
    void theCallsNeedTheLibraryAlone() {
        noClasses()
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(
                        "dev.weft.compat.command..", "dev.weft.cli..", "dev.weft.report..")
                .check(CALLS);
    }

    @Test
    void thePageShowsAnExampleThatRunsHere() throws IOException {
        String page = Files.readString(source("main", "package-info"));
        Matcher snippet =
                Pattern.compile("\\{@snippet :\n(.*?)\n \\* }\n \\*\n", Pattern.DOTALL)
                        .matcher(page);
        assertTrue(snippet.find(), "an example on the page");
        String example = snippet.group(1).replaceAll("(?m)^ \\* ?", "").indent(4);
        String here = Files.readString(source("test", getClass().getSimpleName()));
        assertTrue(here.contains(example), () -> "not run here:\n" + example);
    }

    private static Path source(String of, String name) {
        return Path.of("src", of, "java/dev/weft/compat", name + ".java");
    }

    static Matrix product(Fabric fabric, Matrix rows, Matrix b) {
        try (HelionShared<Matrix> a =
                Helion.empty(fabric, rows.rows(), rows.cols(), rows.dtype())) {
            a.local().copyFrom(rows);
            return Helion.allGatherMatmul(fabric, a, b).c();
        }
    }

    @Test
    void aSourceSystemsCallGivesTheSame() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(2)) {
            Matrix rows = Matrix.copyOf(arena, new float[][] {{1}, {2}});
            Matrix b = Matrix.copyOf(arena, new float[][] {{1, 10}});
            List<Matrix> products = world.call(fabric -> product(fabric, rows, b));
            for (Matrix c : products) {
                assertEquals("[4, 2] fp32", c.describe());
                assertEquals(20f, c.get(3, 1));
            }
        }
    }
}
