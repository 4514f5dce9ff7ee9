// Draws the page, keeps it up to date while the command runs, and follows the reader's colours and printer.

const parts = new Map();

function showProgress(data, ended) {
    let box = document.getElementById('progress');
    if (!data.progress && !ended) {
        return;
    }
    if (!box) {
        box = element('div', {id: 'progress', class: 'progress'});
        document.getElementById('header').after(box);
    }
    const {what, done, of, failed} = data.progress || {};
    const over = ended || data.progress.ended;
    const bar = over || !of ? null : element('progress', {max: of, value: done, 'aria-label': what});
    const count = of ? `${what}: ${formatCount(done)} of ${formatCount(of)}` : what || '';
    const text = failed ? `Failed: ${failed}`
        : data.progress && data.progress.ended ? 'Finished.'
            : ended ? `The command has ended; this is what it had told by then (${count}).` : count;
    box.replaceChildren(...[bar, element('span', {class: failed ? 'failed-text' : 'hint'}, text)].filter(Boolean));
}

function sectionsOf(data) {
    return {run: runSections, compare: compareSections, sweep: sweepSections}[data.kind](data);
}

/** Draws the sections whose data changed, in order; resolves when all of them are on the screen. */
async function draw(data) {
    document.title = data.title;
    showHeader(data, data.kind === 'run' ? data.runs[0] : null);
    showProgress(data, false);
    showFooter(data);
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

/** Makes room for a section and gives back what fills it, once the room is on the page; true if it drew anything. */
function drawPart({id, shows, add}, live) {
    const text = live ? JSON.stringify(shows) : null;
    const known = parts.get(id);
    if (known && known.text === text) {
        return async () => false;
    }
    if (id === 'timeline' && shown.timeline) {
        shown.zoom = shown.timeline.zoom;
    }
    const box = known ? known.box : element('div', {class: 'part'});
    parts.set(id, {box, text});
    return async () => {
        box.replaceChildren();
        await add(box);
        return true;
    };
}

function showFooter(data) {
    document.getElementById('footer').replaceChildren(element('p', {},
        `Made by Weft ${data.weft}. Charts by Apache ECharts 5.5.0 (Apache License 2.0).`));
}

function pause(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Asks for new data about once a second until the command says that it is done, or no longer answers. */
async function follow(data) {
    let tag = null;
    while (!(data.progress && data.progress.ended)) {
        await pause(1000);
        let next = null;
        try {
            const answer = await fetch('data', {cache: 'no-store', headers: tag ? {'If-None-Match': tag} : {}});
            if (answer.status === 304) {
                continue;
            }
            if (!answer.ok) {
                throw new Error(`the command answered ${answer.status}`);
            }
            next = await answer.json();
            tag = answer.headers.get('ETag');
        } catch {
            // The command ended between two questions, which is how most live pages end.
            showProgress(data, true);
            return;
        }
        data = next;
        await draw(data);
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
    await draw(data);
    followColoursAndPrinter();
    window.weft.ready = true;
    if (data.live) {
        await follow(data);
    }
}

start();
