/** Texts from outside, made fit for messages. */
package dev.weft.text;
