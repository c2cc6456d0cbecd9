// The cluster and the queue: read once, then updated by events.
import { signal, useMemo } from "./ui.js";
import { get, useAnswer } from "./api.js";
import { connection, follow } from "./live.js";
import { moment, route } from "./route.js";
import { setPresent } from "./format.js";

export const about = signal(null);
export const failure = signal(null);
export const cluster = signal(null);
export const queue = signal(null);
/** The number of the last moment. */
const known = signal(0);

/** The parameters of all requests: the moment and the run in the address. */
export const when = () => ({ at: moment(), run: route.value.options.run });

/** The time of the scheduler, or the selected moment. */
let ahead = 0;
export const seconds = signal(Date.now() / 1000);
export const now = () => moment() ?? (about.value?.live ? seconds.value + ahead : about.value?.to ?? seconds.value);
setInterval(() => {
	if (!document.hidden) seconds.value = Date.now() / 1000;
}, 1000);

/** Rows of a table as objects. */
export const records = (columns, rows) => rows.map((row) => columns.reduce((record, name, place) => {
	record[name] = row[place];
	return record;
}, {}));

function queueOf(answer) {
	const rows = records(answer.columns, answer.rows);
	for (const row of rows) row.reason = answer.reasons[row.reason] || "";
	return { ...answer, rows, byUid: new Map(rows.map((row) => [row.uid, row])) };
}

const readCluster = async () => {
	cluster.value = await get("cluster", { run: route.value.options.run });
};
const readQueue = async () => {
	queue.value = queueOf(await get("queue", { run: route.value.options.run }));
};

function applyUsage({ at: places, pods, requested }) {
	const known = cluster.value;
	places.forEach((place, index) => {
		known.pods[place] = pods[index];
		for (const [resource, amounts] of Object.entries(requested)) if (known.requested[resource]) known.requested[resource][place] = amounts[index];
	});
	cluster.value = { ...known };
}

function applyQueue({ counts, reasons, rows, left }) {
	const known = queue.value;
	for (const uid of left) known.byUid.delete(uid);
	for (const row of records(known.columns, rows)) known.byUid.set(row.uid, { ...row, reason: reasons[row.reason] || "" });
	queue.value = { ...known, counts: { ...known.counts, ...counts }, rows: [...known.byUid.values()] };
}

function onEvent({ event, data }) {
	if (event === "reset") {
		start();
		return;
	}
	if (event !== "change") return;
	ahead = data.time - Date.now() / 1000;
	known.value = data.moment;
	if (cluster.value && data.layout !== cluster.value.layout) readCluster().catch(() => {});
	else if (cluster.value && data.usage?.at.length) applyUsage(data.usage);
	if (queue.value && data.queue) applyQueue(data.queue);
}

let stop = null;

/** Reads everything, and then follows the events. */
export async function start() {
	stop?.();
	stop = null;
	try {
		about.value = await get("", { run: route.value.options.run });
		failure.value = null;
		setPresent(about.value.live ? null : about.value.to);
		known.value = about.value.moment;
		ahead = about.value.time - Date.now() / 1000;
		await Promise.all([readCluster(), readQueue()]);
	} catch (error) {
		if (error.status === 401 || error.status === 403) return;
		failure.value = error;
		connection.value = { state: "lost", retryAt: Date.now() + 3000 };
		setTimeout(start, 3000);
		return;
	}
	if (about.value.live) stop = follow("events", () => ({ since: known.value }), onEvent);
	else connection.value = { state: "still" };
}

const inThePast = () => moment() != null;

/** Changes when there is a new moment, at most every two seconds. */
export const useNews = () => useMemo(() => (inThePast() ? 0 : known.value), [Math.floor(seconds.value / 2), moment()]);

/** The cluster at the selected moment: `{data, error}`. Fragmentation is not part of events. */
export function useCluster() {
	const requested = inThePast() || route.value.options.colour === "fragmentation";
	const answer = useAnswer(requested ? "cluster" : null, when(), inThePast() ? 0 : Math.floor(seconds.value / 5));
	return requested ? answer : { data: cluster.value, error: failure.value };
}

export function useQueue() {
	const past = useAnswer(inThePast() ? "queue" : null, when());
	if (!inThePast()) return { data: queue.value, error: failure.value };
	if (past.data && !past.data.byUid) Object.assign(past.data, queueOf(past.data));
	return past;
}
