// Draws the page, keeps it up to date while the command runs, and follows the reader's colours and printer.

const parts = new Map();

function showProgress(data, ended) {
    let box = document.getElementById('progress');
    if (!data.progress && !ended) {
        return;
    }
    if (!box) {
        // One element for all texts, since screen readers only tell of changes within one.
        box = element('div', {id: 'progress', class: 'progress'}, element('span', {role: 'status'}));
        document.getElementById('header').after(box);
    }
    const {what, done, of, failed} = data.progress || {};
    const over = ended || data.progress.ended;
    const count = of ? `${what}: ${formatCount(done)} of ${formatCount(of)}` : what || '';
    const text = failed ? `Failed: ${failed}`
        : data.progress && data.progress.ended ? 'Finished.'
            : ended ? `The command has ended; this is what it had told by then (${count}).` : count;
    const status = box.querySelector('[role=status]');
    status.className = failed ? 'failed-text' : 'hint';
    if (status.textContent !== text) {
        status.textContent = text;
    }
    box.querySelectorAll('progress').forEach((bar) => bar.remove());
    if (!over && of) {
        status.before(element('progress', {max: of, value: done, 'aria-label': what}));
    }
}

function sectionsOf(data) {
    return {run: runSections, compare: compareSections, sweep: sweepSections}[data.kind](data);
}

/** Draws the sections whose data changed, in order; resolves when all of them are on the screen. */
async function draw(data, gone) {
    document.title = data.title;
    showHeader(data, data.kind === 'run' ? data.runs[0] : null);
    showProgress(data, gone);
    showFooter(data);
    postponed = false;
    const focused = document.activeElement && document.activeElement.id;
    const sections = sectionsOf(data);
    const drawing = sections.map((one) => drawPart(one, data.live));
    const main = document.getElementById('content');
    for (const id of [...parts.keys()].filter((known) => !sections.some((one) => one.id === known))) {
        parts.get(id).box.remove();
        parts.delete(id);
    }
    sections.forEach(({id}, i) => {
        if (main.children[i] !== parts.get(id).box) {
            main.insertBefore(parts.get(id).box, main.children[i] || null);
        }
    });
    for (const add of drawing) {
        // One after the other, with a breath between, so that the first ones can be seen and used before the last.
        if (await add()) {
            await pause(0);
        }
    }
    dropChartsOffPage();
    if (focused && document.activeElement === document.body && document.getElementById(focused)) {
        document.getElementById(focused).focus({preventScroll: true});
    }
    await new Promise((resolve) => requestAnimationFrame(() => {
        charts.forEach((_, chart) => chart.getZr().flush());
        resolve();
    }));
}

let pressed = null;
let postponed = false;

/** Whether the reader is at work in a section: a drag or an open list would end if it were drawn anew. */
function isInUse(box) {
    const {activeElement} = document;
    return (pressed !== null && box.contains(pressed))
        || (activeElement !== null && activeElement.tagName === 'SELECT' && box.contains(activeElement));
}

/**
 * Makes room for a section and gives back what fills it, once the room is on the page; true if it drew anything.
 * What is in use is left as it is, to be drawn with the next data.
 */
function drawPart({id, shows, prepare, add}, live) {
    const text = live ? JSON.stringify(shows) : null;
    const known = parts.get(id);
    if (known && known.text === text) {
        return async () => false;
    }
    const box = known ? known.box : element('div', {class: 'part'});
    parts.set(id, known || {box, text: null});
    return async () => {
        const prepared = prepare ? await prepare() : null;
        if (isInUse(box)) {
            postponed = true;
            return false;
        }
        parts.get(id).text = text;
        // As high as before until the new content is there, so that the page does not jump.
        box.style.minHeight = `${box.offsetHeight}px`;
        hideTipOf(box);
        box.replaceChildren();
        await add(box, prepared);
        box.style.minHeight = '';
        return true;
    };
}

function showFooter(data) {
    document.getElementById('footer').replaceChildren(element('p', {},
        `Made by Weft ${data.weft}. Charts by Apache ECharts ${echarts.version} (Apache License 2.0).`));
}

function pause(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
}

function isEnded(data) {
    return Boolean(data.progress && data.progress.ended);
}

/** The command's data if it changed since the last answer, else null; notes in asked what the answer was. */
async function askAnew(asked) {
    try {
        const headers = asked.tag ? {'If-None-Match': asked.tag} : {};
        const answer = await fetch('data', {cache: 'no-store', headers});
        if (answer.status === 304) {
            return null;
        }
        if (!answer.ok) {
            throw new Error(`the command answered ${answer.status}`);
        }
        const data = await answer.json();
        asked.tag = answer.headers.get('ETag');
        return data;
    } catch {
        // The command ended between two questions, which is how most live pages end.
        asked.gone = true;
        return null;
    }
}

/** Draws new data about once a second until the command says that it is done, or no longer answers. */
async function follow(data) {
    const asked = {tag: null, gone: false};
    while (postponed || !(asked.gone || isEnded(data))) {
        await pause(1000);
        const next = asked.gone || isEnded(data) ? null : await askAnew(asked);
        data = next || data;
        if (next || postponed) {
            await draw(data, asked.gone);
        } else if (asked.gone) {
            showProgress(data, true);
        }
    }
}

function followPointer() {
    window.addEventListener('pointerdown', (event) => { pressed = event.target; }, {capture: true});
    for (const end of ['pointerup', 'pointercancel']) {
        window.addEventListener(end, () => { pressed = null; }, {capture: true});
    }
}

function followColoursAndPrinter() {
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawCharts);
    window.matchMedia('print').addEventListener('change', (event) => setPrinting(event.matches));
    window.addEventListener('beforeprint', () => setPrinting(true));
    window.addEventListener('afterprint', () => setPrinting(false));
    window.addEventListener('wheel', hideTip, {passive: true, capture: true});
}

/**
 * For tests and scripts: ready is true once everything is drawn; zoomRange() is the part of the call in sight, in
 * percent; spanAt(clientX, clientY) is the number of the span there, or null; rowPoint(span) is the middle of a span
 * in client coordinates.
 */
window.weft = {
    ready: false,
    zoomRange: () => (shown.timeline ? [...shown.timeline.zoom] : [0, 100]),
    spanAt: (clientX, clientY) => (shown.timeline ? shown.timeline.spanAt(clientX, clientY) : null),
    rowPoint: (span) => (shown.timeline ? shown.timeline.rowPoint(span) : null),
};

async function start() {
    registerTimelineShape();
    const data = JSON.parse(document.getElementById('weft-data').textContent);
    await draw(data, false);
    followColoursAndPrinter();
    followPointer();
    window.weft.ready = true;
    if (data.live) {
        await follow(data);
    }
}

start();
