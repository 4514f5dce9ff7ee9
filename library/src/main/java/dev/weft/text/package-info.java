/** Text from outside: read with one-line refusals, and made safe for messages. */
package dev.weft.text;
