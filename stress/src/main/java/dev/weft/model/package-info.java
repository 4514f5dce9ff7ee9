/**
 * An exhaustive check of the progress protocol: the words that ranks raise and await, and the rule
 * by which buffers are used again.
 *
 * <p>Invariants. The steps are those of the plans; what a caller and workers do with them is
 * written down as straight scripts of actions over all calls. It knows no collective. Every word
 * and every cell of memory has one writer, which is checked when a model is made; so all of the
 * memory follows from how far each thread has come, and that is the whole state. Words only grow,
 * so a wait that is over stays over; every reduction of the search rests on that.
 */
package dev.weft.model;
