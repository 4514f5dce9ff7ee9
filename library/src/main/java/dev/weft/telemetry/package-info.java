/**
 * What Weft reports about itself besides results: one logger, and Flight Recorder events.
 * Invariant: every fallback that Weft chooses is reported here, once.
 */
package dev.weft.telemetry;
