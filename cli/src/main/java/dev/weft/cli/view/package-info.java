/**
 * What people look at: the summary, timelines drawn as text, reports, pages that are served on
 * loopback.
 */
package dev.weft.cli.view;
