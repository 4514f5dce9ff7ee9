package dev.weft.report;

/**
 * Something to try next.
 *
 * @param title what, with the option
 * @param reason why, with the numbers of the run
 */
public record Advice(String title, String reason) {}
