package dev.weft.cli;

/**
 * A command that another jar adds to {@link Main}'s, found by {@link java.util.ServiceLoader}.
 * Picocli's annotations on its class say the rest.
 */
public interface AddOnCommand {}
