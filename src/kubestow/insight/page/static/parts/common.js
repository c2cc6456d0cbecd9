// Components and texts that all views share.
import { html, cls, useEffect, useRef, Icon } from "../lib/ui.js";
import { nodeLink, podLink } from "../lib/route.js";
import { count, seconds, splitPod } from "../lib/format.js";

export const STATES = {
	active: { title: "Active", badge: "accent", hint: "ready for an attempt" },
	backoff: { title: "Backoff", badge: "warn", hint: "waits after a failed attempt" },
	unschedulable: { title: "Unschedulable", badge: "bad", hint: "fits on no node; waits for a change of the cluster" },
	gated: { title: "Gated", badge: "", hint: "blocked by a scheduling gate or a plugin" },
	incomplete: { title: "Incomplete", badge: "", hint: "waits for its pod group to be created", ofGroups: true },
	pending: { title: "Pending", badge: "", hint: "waits for the end of its pod group's cycle", ofGroups: true },
	inFlight: { title: "In flight", badge: "ok", hint: "in a scheduling cycle or binding" },
	waiting: { title: "Waiting on permit", badge: "accent", hint: "has a node, and waits for permission" },
};
const OUTCOMES = { scheduled: ["Scheduled", "ok"], unschedulable: ["Unschedulable", "bad"], error: ["Error", "bad"] };

export const State = ({ of }) => html`<span class=${cls("badge", STATES[of]?.badge)} title=${STATES[of]?.hint}>${STATES[of]?.title || of}</span>`;
export const Outcome = ({ of }) => html`<span class=${cls("badge", OUTCOMES[of]?.[1])}>${OUTCOMES[of]?.[0] || of}</span>`;

/** A name, isolated in its own text direction. In a narrow table its middle is cut: names of equal pods differ at the end. */
export const Name = ({ children, space, title = children }) => {
	const letters = [...(children ?? "")];
	return html`<bdi class="name" title=${title}><span class="stem">${space && html`<span class="space">${space}/</span>`}${letters.slice(0, -6).join("")}</span>${letters.slice(-6).join("")}</bdi>`;
};
/** A link to a node; a quiet link is not a tab stop, because the table around it handles keys. */
export const Node = ({ name, quiet }) => html`<a href=${nodeLink(name)} tabindex=${quiet && -1}><${Name}>${name}<//></a>`;
export const Pod = ({ pod, quiet }) => {
	const [namespace, name] = splitPod(pod);
	return html`<a href=${podLink(pod)} tabindex=${quiet && -1}><${Name} space=${namespace} title=${pod}>${name}<//></a>`;
};

/** The head of a view: its title, a hint, and its controls. */
export const Title = ({ children, hint, controls }) => html`<div class="title"><div><h1>${children}</h1>${hint && html`<p>${hint}</p>`}</div>${controls}</div>`;

export const Tile = ({ name, children }) => html`<div class="tile"><dt>${name}</dt><dd>${children}</dd></div>`;

export const Side = ({ name, label, close, children }) => {
	const heading = useRef(null);
	useEffect(() => document.activeElement?.id === "search" || heading.current.focus({ preventScroll: true }), []);
	return html`<aside class="panel side" aria-label=${label} onKeyDown=${(event) => event.key === "Escape" && close()}>
		<div class="row"><h2 class="grow" tabindex="-1" ref=${heading}><${Name}>${name}<//></h2><button class="plain" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></div>${children}</aside>`;
};

/** A plain table of figures: the first cell of each row is its heading. */
export const Figures = ({ label, columns, rows }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
	<thead><tr>${columns.map((name, place) => html`<th scope="col" class=${place ? "end" : null}>${name}</th>`)}</tr></thead>
	<tbody>${rows.map(([name, ...cells]) => html`<tr><th scope="row">${name}</th>${cells.map((cell) => html`<td class="end">${cell}</td>`)}</tr>`)}</tbody></table></div>`;

/** Bars with the number of items of each kind; one can be selected. `items`: `{key, size, tone, text}`. */
export const Bars = ({ label, items, all, picked, onPick, children }) => html`<ul class="bars" aria-label=${label}>${items.map(({ key, size, tone, text, title }) => html`<li key=${key}>
	<button aria-pressed=${picked === undefined ? null : picked === key} title=${title} onClick=${() => onPick(picked === key ? null : key)}><span class="meter"><i class=${tone} style=${{ width: `${(size / all) * 100}%` }}></i></span><b>${count(size)}</b><span>${text}</span></button></li>`)}${children}</ul>`;

export const POD_COLUMN = { key: "pod", title: "Pod", width: "minmax(180px,2fr)", small: "minmax(110px,1fr)", narrow: true, sort: true, cell: ({ pod }) => html`<${Pod} pod=${pod} quiet />` };
export const numbers = (key, title, width, more) => ({ key, title, width, end: true, sort: true, cell: (row) => count(row[key] || 0), ...more });

/** The seconds from the first attempt to a decision. The record's own `waited` begins at the previous attempt. */
export const waited = ({ time, queue }) => seconds(time) - seconds(queue?.firstAttempt);

/** Pairs of a name and a number, sorted by the size of the number, largest first. */
export const largest = (pairs) => pairs.sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));

/** Pairs of a kind and its number of rows, the most frequent first. */
export const tally = (rows, key) => {
	const sizes = new Map();
	for (const row of rows) sizes.set(key(row), (sizes.get(key(row)) || 0) + 1);
	return largest([...sizes]);
};

const briefs = new Map();

/** The distinctive part of a message: without the count of nodes and the result of preemption. */
export function brief(message) {
	if (briefs.size > 999) briefs.clear();
	if (!briefs.has(message)) briefs.set(message, message.replace(/^\d+\/\d+ nodes are available: /, "").replace(/ ?preemption: .*$/s, "").replace(/\.\s*$/, "") || message);
	return briefs.get(message);
}
