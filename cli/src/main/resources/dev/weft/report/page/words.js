// Numbers, and the words for them.

function meanOf(values) {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Of any number of values, where arguments of Math.max would overflow the stack. */
function largestOf(values) {
    return values.reduce((largest, value) => Math.max(largest, value), -Infinity);
}

function withDigits(value, digits) {
    const magnitude = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
    const decimals = Math.min(6, Math.max(0, digits - 1 - magnitude));
    return value.toLocaleString('en-US', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
}

function formatScaled(value, units, step, digits) {
    let unit = 0;
    while (unit < units.length - 1 && Math.abs(value) >= step * 0.9995) {
        value /= step;
        unit++;
    }
    return `${Number.isInteger(value) ? value.toLocaleString('en-US') : withDigits(value, digits)} ${units[unit]}`;
}

function formatNs(ns) {
    return formatScaled(ns, ['ns', 'µs', 'ms', 's'], 1000, 3);
}

function formatUs(us) {
    return formatNs(us * 1000);
}

function formatBytes(bytes) {
    return formatScaled(bytes, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024, 3);
}

function formatCount(count) {
    return count.toLocaleString('en-US');
}

/** By the second, in the unit that leaves digits to show: a transfer that waits for a busy core may be very slow. */
function formatRate(amount, ns, unit) {
    const units = ['', 'k', 'M', 'G'].map(prefix => `${prefix}${unit}/s`);
    return ns > 0 ? formatScaled(amount / ns * 1e9, units, 1000, 3) : 'too short to tell';
}

/** A time that is a multiple of something round, with the decimals that this takes. */
function formatRound(ns) {
    const [size, name] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']].find(([unit]) => ns >= unit) || [1, 'ns'];
    return `${Number((ns / size).toPrecision(12))} ${name}`;
}

/** Times along an axis that shows spanNs in all, with as many decimals as its steps need. */
function formatTick(ns, spanNs) {
    const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
    const [size, name] = units.find(([unit]) => spanNs >= unit * 2) || units[3];
    const decimals = Math.max(0, Math.ceil(-Math.log10(spanNs / size / 10)));
    return `${(ns / size).toFixed(decimals)} ${name}`;
}
