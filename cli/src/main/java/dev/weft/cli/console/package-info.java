/**
 * What every command prints and how it ends: text and tables for people, files for programs, one
 * line for a failure, exit codes. Invariant: no text from a user or a file reaches a terminal
 * unfiltered, and files are written completely or not at all.
 */
package dev.weft.cli.console;
