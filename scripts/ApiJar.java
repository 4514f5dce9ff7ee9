import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassElement;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeModel;
import java.lang.classfile.FieldModel;
import java.lang.classfile.MethodModel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;

/**
 * Writes the API of a jar of the library: {@code java ApiJar.java IN OUT}. It has the packages that
 * the module exports to all, with public and protected members, and no code.
 */
final class ApiJar {

    private static final int VISIBLE = ClassFile.ACC_PUBLIC | ClassFile.ACC_PROTECTED;

    public static void main(String[] arguments) throws IOException {
        try (JarFile jar = new JarFile(arguments[0]);
                OutputStream file = Files.newOutputStream(Path.of(arguments[1]));
                JarOutputStream out = new JarOutputStream(file)) {
            List<String> exported = exported(parsed(jar, jar.getJarEntry("module-info.class")));
            ClassFile withoutUnusedConstants =
                    ClassFile.of(ClassFile.ConstantPoolSharingOption.NEW_POOL);
            for (JarEntry entry : jar.stream().toList()) {
                String name = entry.getName();
                boolean anonymous = name.matches(".*\\$\\d.*");
                if (name.endsWith(".class")
                        && !anonymous
                        && exported.contains(name.substring(0, Math.max(0, name.lastIndexOf('/'))))) {
                    JarEntry copy = new JarEntry(name);
                    copy.setTimeLocal(java.time.LocalDateTime.of(1980, 2, 1, 0, 0));
                    out.putNextEntry(copy);
                    out.write(
                            withoutUnusedConstants.transformClass(
                                    parsed(jar, entry), onlyVisible()));
                }
            }
        }
    }

    private static ClassModel parsed(JarFile jar, JarEntry entry) throws IOException {
        try (InputStream in = jar.getInputStream(entry)) {
            return ClassFile.of().parse(in.readAllBytes());
        }
    }

    private static List<String> exported(ClassModel module) {
        return module.findAttribute(Attributes.module()).orElseThrow().exports().stream()
                .filter(export -> export.exportsTo().isEmpty())
                .map(export -> export.exportedPackage().name().stringValue())
                .toList();
    }

    private static ClassTransform onlyVisible() {
        ClassTransform members = ClassTransform.dropping(ApiJar::isHidden);
        return members.andThen(
                ClassTransform.transformingMethods(
                        (method, element) -> {
                            if (!(element instanceof CodeModel)) {
                                method.with(element);
                            }
                        }));
    }

    private static boolean isHidden(ClassElement element) {
        return switch (element) {
            // A class whose constructors are all hidden cannot be extended: they stay.
            case MethodModel method ->
                    (method.flags().flagsMask() & VISIBLE) == 0
                            && !method.methodName().equalsString("<init>");
            case FieldModel field -> (field.flags().flagsMask() & VISIBLE) == 0;
            default -> false;
        };
    }
}
