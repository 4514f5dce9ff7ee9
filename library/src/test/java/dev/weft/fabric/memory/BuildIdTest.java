package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BuildIdTest {

    @TempDir Path temporary;

    private Path classes;

    @BeforeEach
    void makeClasses() throws IOException {
        classes = temporary.resolve("classes");
        write("dev/weft/fabric/A.class", "a");
        write("dev/weft/B.class", "b");
        write("module-info.class", "m");
    }

    private void write(String name, String text) throws IOException {
        Path file = classes.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    private Path jar(String name) {
        Path jar = temporary.resolve(name);
        ToolProvider tool = ToolProvider.findFirst("jar").orElseThrow();
        int code = tool.run(System.out, System.err, "-cf", "" + jar, "-C", "" + classes, "dev");
        assertEquals(0, code);
        return jar;
    }

    @Test
    void aJarAndAFolderOfTheSameClassesAreOneBuild() throws IOException {
        assertEquals(BuildId.of(classes), BuildId.of(jar("first.jar")));
    }

    @Test
    void onlyItsOwnClassesMatter() throws IOException {
        long before = BuildId.of(classes);
        write("module-info.class", "with a main class");
        write("dev/weft/words.txt", "not a class");
        write("org/other/C.class", "not Weft's");
        assertEquals(before, BuildId.of(classes));
    }

    @Test
    void aClassThatIsChangedAddedRenamedOrGoneIsAnotherBuild() throws IOException {
        long before = BuildId.of(classes);
        write("dev/weft/B.class", "b2");
        long changed = BuildId.of(classes);
        assertNotEquals(before, changed);
        assertEquals(changed, BuildId.of(jar("changed.jar")));
        write("dev/weft/B.class", "b");
        assertEquals(before, BuildId.of(classes));
        write("dev/weft/C.class", "c");
        assertNotEquals(before, BuildId.of(classes));
        Files.move(classes.resolve("dev/weft/C.class"), classes.resolve("dev/weft/D.class"));
        assertNotEquals(before, BuildId.of(classes));
        Files.delete(classes.resolve("dev/weft/D.class"));
        Files.delete(classes.resolve("dev/weft/B.class"));
        assertNotEquals(before, BuildId.of(classes));
    }

    @Test
    void theLibraryThatRunsHasOne() throws IOException {
        assertEquals(BuildId.current(), BuildId.current());
        assertNotEquals(
                BuildId.of(Files.createDirectory(temporary.resolve("empty"))),
                BuildId.current(),
                "its classes were found");
        assertTrue(BuildId.text(BuildId.current()).matches("[0-9a-f]{16}"));
    }
}
