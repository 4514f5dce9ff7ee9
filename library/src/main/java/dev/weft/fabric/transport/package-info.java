/**
 * What operators need from a fabric: memory that peers can reach, words to wait for, moves of
 * chunks.
 */
package dev.weft.fabric.transport;
