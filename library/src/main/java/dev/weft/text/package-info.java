/** Text from outside, made safe for messages. */
package dev.weft.text;
