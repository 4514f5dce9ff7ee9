package dev.weft.cli;

/** The exit codes of the command, besides 0. */
final class ExitCode {

    /** A run was rightly asked for and did not succeed. */
    static final int FAILED = 1;

    /** Wrong usage, or a part that is not there. */
    static final int USAGE = 2;

    private ExitCode() {}
}
