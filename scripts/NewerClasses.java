import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassFileVersion;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.MethodModel;
import java.lang.classfile.MethodTransform;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;

/**
 * Writes a jar anew with its classes in the format of Java 8: {@code java NewerClasses.java IN OUT}.
 * The AOT cache leaves out classes of the format before Java 6, such as those of picocli, which then
 * are read and verified at every start. Their code stays as it is; the frames that the newer format
 * wants are added.
 */
final class NewerClasses {

    public static void main(String[] arguments) throws IOException {
        Path from = Path.of(arguments[0]);
        try (JarFile jar = new JarFile(from.toFile());
                URLClassLoader classes = new URLClassLoader(new URL[] {from.toUri().toURL()});
                OutputStream file = Files.newOutputStream(Path.of(arguments[1]));
                JarOutputStream out = new JarOutputStream(file)) {
            ClassFile format =
                    ClassFile.of(
                            ClassFile.StackMapsOption.GENERATE_STACK_MAPS,
                            ClassFile.ClassHierarchyResolverOption.of(
                                    ClassHierarchyResolver.ofResourceParsing(classes)));
            for (JarEntry entry : jar.stream().toList()) {
                out.putNextEntry(new JarEntry(entry.getName()));
                try (InputStream in = jar.getInputStream(entry)) {
                    byte[] bytes = in.readAllBytes();
                    out.write(isOld(entry.getName(), bytes) ? newer(format, bytes) : bytes);
                }
            }
        }
    }

    /** The format's number is in bytes 6 and 7. */
    private static boolean isOld(String name, byte[] bytes) {
        return name.endsWith(".class") && bytes[7] < ClassFile.JAVA_6_VERSION;
    }

    private static byte[] newer(ClassFile format, byte[] bytes) {
        ClassModel old = format.parse(bytes);
        return format.build(
                old.thisClass().asSymbol(),
                built -> {
                    built.withVersion(ClassFile.JAVA_8_VERSION, 0);
                    for (var element : old) {
                        switch (element) {
                            case ClassFileVersion _ -> {}
                            // Not ACCEPT_ALL, which would copy the code with no frames.
                            case MethodModel method ->
                                    built.transformMethod(
                                            method,
                                            MethodTransform.transformingCode(
                                                    CodeTransform.ofStateful(
                                                            () ->
                                                                    (code, part) ->
                                                                            code.with(part))));
                            default -> built.with(element);
                        }
                    }
                });
    }
}
