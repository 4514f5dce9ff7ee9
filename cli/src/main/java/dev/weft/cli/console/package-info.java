/**
 * What every command prints and how it ends: text and tables for people, files for programs, one
 * line for a failure, exit codes. Invariant: nothing that a user or a file has put in reaches a
 * terminal unfiltered, and files are written whole or not at all.
 */
package dev.weft.cli.console;
