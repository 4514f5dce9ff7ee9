/** What builders of operators on CPUs and on GPUs share: what is wanted, and how it is tried. */
package dev.weft.op.exec;
