/** What operators ask of a fabric: memory that peers reach, words to wait for, chunks to move. */
package dev.weft.fabric.transport;
