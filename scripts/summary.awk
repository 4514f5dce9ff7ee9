# Sums up JUnit XML reports: the skipped tests with their reasons, the failed ones, then one line of totals. Fails where a
# test failed or none ran.

BEGIN { RS = "<" }

# The value of attribute $2 of the tag in $1, decoded.
function attribute(tag, name,    start, value) {
    start = index(tag, " " name "=\"")
    if (start == 0) return ""
    value = substr(tag, start + length(name) + 3)
    value = substr(value, 1, index(value, "\"") - 1)
    gsub(/&#10;.*/, "", value)
    gsub(/&quot;/, "\"", value)
    gsub(/&apos;/, "'", value)
    gsub(/&lt;/, "<", value)
    gsub(/&gt;/, ">", value)
    gsub(/&amp;/, "\\&", value)
    return value
}

/^testsuite / {
    run += attribute($0, "tests")
    failures += attribute($0, "failures")
    errors += attribute($0, "errors")
    skipped += attribute($0, "skipped")
}

/^testcase / {
    test = attribute($0, "classname")
    name = attribute($0, "name")
    if (name != "") test = test "." name
}

/^(failure|error)[ >]/ { failed[++failedCount] = test ": " attribute($0, "message") }

# Maven tells the reason in an attribute, the console launcher in the text that follows.
/^skipped/ {
    reason = attribute($0, "message")
    if (reason == "" && $0 !~ /\/>[ \n]*$/) {
        inText = 1
        text = ""
        next
    }
    skip(reason)
}

inText && /^\/skipped/ {
    inText = 0
    sub(/^<!\[CDATA\[/, "", text)
    sub(/\]\]>.*/, "", text)
    sub(/\n.*/, "", text)
    sub(/^parent was skipped: /, "", text)
    sub(/^org\.opentest4j\.TestAbortedException: /, "", text)
    skip(text)
}

inText { text = text "<" $0 }

function skip(reason,    line) {
    if (reason == "") reason = "no reason given"
    line = test ": " reason
    if (!(line in times)) lines[++count] = line
    times[line]++
}

END {
    if (count > 0) print "\nSkipped:"
    for (i = 1; i <= count; i++) {
        print "  " lines[i] (times[lines[i]] > 1 ? " (" times[lines[i]] " times)" : "")
    }
    if (failedCount > 0) print "\nFailed:"
    for (i = 1; i <= failedCount; i++) print "  " failed[i]
    printf "\nTests run: %d, Failures: %d, Errors: %d, Skipped: %d\n", run, failures, errors, skipped
    exit (run == 0 || failures + errors > 0) ? 1 : 0
}
