// The history of a pod in the queue and in binding, as a strip of time and as a list.
import { html } from "../lib/ui.js";
import { clock, duration, seconds } from "../lib/format.js";
import { STATES } from "./common.js";

export const Moves = ({ history }) => (history?.length
	? html`<ol class="moves">${history.map(({ time, queue, event, plugin }, number) => html`<li key=${number}><time>${clock(time)}</time><span>${STATES[queue]?.title || queue}</span><span class="hint">${event || ""}${plugin ? ` (${plugin})` : ""}</span></li>`)}</ol>`
	: html`<p class="hint">No moves yet.</p>`);

const TONES = { active: "c0", backoff: "c4", unschedulable: "c1", gated: "c7", deciding: "c3" };

/** The periods in each queue, in the scheduling cycle, and in each step of binding. */
function stretches(decision) {
	const { queue, binding, time, seconds: spent = 0 } = decision;
	const decided = seconds(time);
	const moves = queue?.history || [];
	const parts = moves.map(({ time: from, queue: name }, number) => ({
		name: STATES[name]?.title || name, tone: TONES[name] || "c7", from: seconds(from), to: number + 1 < moves.length ? seconds(moves[number + 1].time) : decided - spent,
	}));
	parts.push({ name: "Scheduling cycle", tone: "c3", from: decided - spent, to: decided });
	for (const { step, plugin, time: at, seconds: took = 0 } of binding?.steps || []) {
		parts.push({ name: plugin ? `${step} (${plugin})` : step, tone: step === "WaitOnPermit" ? "c5" : "c2", from: seconds(at), to: seconds(at) + took });
	}
	return parts.filter(({ from, to }) => to >= from);
}

/** A logarithm, so that a microsecond is visible beside an hour. */
const weight = ({ from, to }) => Math.max(1, Math.log10((to - from) * 1e6 + 10));

export function Strip({ decision }) {
	const parts = stretches(decision);
	return html`<ol class="strip" aria-label="Timeline">${parts.map((part, number) => html`<li key=${number} style=${{ flexGrow: weight(part), borderColor: `var(--${part.tone})` }} title=${`${part.name}: ${duration(part.to - part.from)}, from ${clock(part.from)}`}>
		<b>${part.name}</b><span>${duration(part.to - part.from)}</span></li>`)}</ol>`;
}
