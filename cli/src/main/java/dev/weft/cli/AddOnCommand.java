package dev.weft.cli;

/**
 * A command that another jar adds to {@link Main}'s, found by {@link java.util.ServiceLoader}. Its
 * class says the rest by picocli's annotations.
 */
public interface AddOnCommand {}
