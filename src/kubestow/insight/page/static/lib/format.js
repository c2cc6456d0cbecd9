// Formats numbers, quantities and times for display.
const trim = (number, digits) => String(Number(number.toFixed(digits)));

const COUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const count = (number) => COUNT.format(number);

/** The order of names: node-9 before node-10. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Rounded down as in kubestow capacity, so that 100 % is full. */
export const percent = (share) => (Number.isFinite(share) ? `${share > 0 && share < 0.01 ? "<1" : Math.floor(share * 100 + 1e-9)} %` : "–");

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** An amount of a resource in its base unit (millicores, bytes, pieces); memory in the format of Kubernetes. */
export function quantity(resource, amount) {
	if (resource === "cpu") return amount < 1e5 ? trim(amount / 1000, amount < 1e3 ? 3 : 1) : count(amount / 1000);
	if (resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-")) {
		let step = 0;
		while (Math.abs(amount) >= 1024 && step < BINARY.length - 1) {
			amount /= 1024;
			step += 1;
		}
		return trim(amount, amount < 10 && step ? 1 : 0) + BINARY[step];
	}
	return amount < 1e3 ? trim(amount, 2) : count(amount);
}

/** A length of time: 340 µs, 12 ms, 4.2 s, 3 min, 2 h 5 min. */
export function duration(seconds) {
	if (!Number.isFinite(seconds)) return "–";
	const size = Math.abs(seconds);
	const whole = Math.round(size);
	if (size === 0) return "0 s";
	if (size < 0.001) return `${Math.round(seconds * 1e6)} µs`;
	if (size < 1) return `${trim(seconds * 1000, size < 0.01 ? 1 : 0)} ms`;
	if (whole < 60) return `${trim(seconds, size < 10 ? 1 : 0)} s`;
	if (whole < 3600) return `${Math.floor(whole / 60)} min${whole < 600 && whole % 60 ? ` ${whole % 60} s` : ""}`;
	if (whole < 86400) return `${Math.floor(whole / 3600)} h${Math.floor(whole / 60) % 60 ? ` ${Math.floor(whole / 60) % 60} min` : ""}`;
	return `${Math.floor(whole / 86400)} d ${Math.floor(whole / 3600) % 24} h`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
let present = null;
/** Sets the end of a recording, in seconds since 1970; null: now. */
export const setPresent = (moment) => {
	present = moment;
};
const DATE = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", dateStyle: "medium" });

/** A moment, given in seconds since 1970 or as RFC 3339; with its date unless it is within twelve hours of the present. */
export function clock(moment) {
	if (moment == null || moment === "") return "–";
	const date = new Date(typeof moment === "number" ? moment * 1000 : moment);
	if (Number.isNaN(date.getTime())) return String(moment);
	return (Math.abs((present == null ? Date.now() : present * 1000) - date) < 43200e3 ? CLOCK : DATE).format(date);
}

export const seconds = (moment) => (typeof moment === "number" ? moment : Date.parse(moment) / 1000);

/** A rate or a plain figure with its significant digits. */
export const figure = (number) => (!Number.isFinite(number) ? "–" : Math.abs(number) >= 100 ? count(number) : trim(number, Math.abs(number) >= 10 ? 1 : 2));

export const splitPod = (pod) => {
	const at = pod.indexOf("/");
	return at < 0 ? ["", pod] : [pod.slice(0, at), pod.slice(at + 1)];
};
