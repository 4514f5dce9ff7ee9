package dev.weft.cli.console;

import picocli.CommandLine.IVersionProvider;

/** The version from the jar's manifest, and the Java that runs it. */
public final class Version implements IVersionProvider {

    /** Only the number; {@code development} when not run from a jar. */
    public static String number() {
        String version = Version.class.getPackage().getImplementationVersion();
        return version == null ? "development" : version;
    }

    @Override
    public String[] getVersion() {
        return new String[] {
            "weft " + number(),
            "Java %s on %s %s"
                    .formatted(
                            Runtime.version(),
                            System.getProperty("os.name"),
                            System.getProperty("os.arch"))
        };
    }
}
