// The details of a decision, recorded or of a dry run.
import { html } from "../lib/ui.js";
import { setOptions, route } from "../lib/route.js";
import { count, figure, plural } from "../lib/format.js";
import { Matrix } from "./matrix.js";
import { Figures, Node, Pod, largest } from "./common.js";

const CHOICES = {
	only: "The only feasible node.",
	first: "The first feasible node; no plugin scores.",
	nominated: "The nominated node, which is still feasible.",
	score: "The highest score.",
	random: "A random choice among the nodes with the highest score.",
};

const RunnerUp = ({ runnerUp, chosen }) => {
	const rows = largest(Object.entries(runnerUp.by).filter(([, difference]) => difference));
	const most = Math.max(1, ...rows.map(([, difference]) => Math.abs(difference)));
	return html`<section class="panel"><h2>Chosen over the runner-up</h2>
		<p>${runnerUp.behind ? html`<${Node} name=${chosen} /> leads <${Node} name=${runnerUp.node} /> by <strong>${figure(runnerUp.behind)}</strong>.` : html`<${Node} name=${chosen} /> and <${Node} name=${runnerUp.node} /> have the same score.`}</p>
		<dl class="leads">${rows.map(([plugin, difference]) => html`<div key=${plugin}><dt>${plugin}</dt><dd><span class="lead"><i class=${difference < 0 ? "behind" : ""} style=${{ width: `${(Math.abs(difference) / most) * 50}%` }}></i></span><b>${difference > 0 ? "+" : ""}${figure(difference)}</b></dd></div>`)}</dl></section>`;
};

/** Nothing if the message of the outcome says it all. */
function Preemption({ preemption, outcome }) {
	const { plugin, message, nominated, victims = [], candidates = [], why, pdbViolations } = preemption;
	if (!nominated && !candidates.length && outcome.includes(message)) return null;
	return html`<section class="panel"><h2>Preemption <small>${plugin}</small></h2>
		${message && html`<p>${message}</p>`}
		${nominated && html`<p>Nominated node: <${Node} name=${nominated} />. Victims: ${plural(victims.length, "pod")}${pdbViolations ? `, violating ${plural(pdbViolations, "disruption budget")}` : ""}.</p>
			<ul class="list">${victims.map(({ pod, priority }) => html`<li key=${pod}><span class="grow"><${Pod} pod=${pod} /></span><span class="hint">priority ${count(priority)}</span></li>`)}</ul>`}
		${candidates.length > 0 && html`<h3>${plural(candidates.length, "candidate")}${why ? `, decided by ${why}` : ""}</h3>
			<${Figures} label="Candidates" columns=${["Node", "Budgets violated", "Highest priority", "Sum of priorities", "Victims"]}
				rows=${candidates.slice(0, 20).map((one) => [html`<${Node} name=${one.node} />`, ...[one.pdbViolations, one.highestPriority, one.prioritySum, one.victims].map((number) => count(number || 0))])} />`}
	</section>`;
}

/** What stands in the way of a pod, by name. */
export const InTheWay = ({ causes = [] }) => causes.length > 0 && html`<section class="panel"><h2>In the way</h2><ul class="stack">${causes.map(({ plugin, text }, number) => html`<li key=${number}>${text} <span class="hint">${plugin}</span></li>`)}</ul></section>`;

/** Copies commands to the clipboard; browsers only allow it on pages from this machine or over TLS. */
const Copy = ({ commands = [] }) => commands.length > 0 && navigator.clipboard && html`<button class="plain" title=${commands.join("\n")} onClick=${({ currentTarget }) => navigator.clipboard.writeText(`${commands.join("\n")}\n`).then(() => { currentTarget.textContent = "Copied"; })}>Copy command</button>`;

export const WouldFit = ({ changes, stuck, together }) => html`<section class="panel fits"><h2>Would fit if</h2>
	${changes.length ? html`<ol class="stack">${changes.map(({ side, change, opens, nodes = [], alike, placed, commands }, number) => html`<li key=${number}><span class=${`badge ${side === "pod" || side === "group" ? "accent" : side === "node" ? "warn" : "ok"}`}>${side}</span>
			<div class="grow"><strong>${change}</strong><div class="hint">${placed != null ? `${plural(placed, "pod")} placed` : html`opens ${plural(opens, "node")}${nodes.length > 0 ? ": " : ""}${nodes.map((node, place) => html`${place > 0 && ", "}<${Node} key=${node} name=${node} />`)}${opens > nodes.length ? " …" : ""}`}${alike > 1 ? `; ${plural(alike - 1, "more node")} ${alike === 2 ? "lacks" : "lack"} only this` : ""}</div></div><${Copy} commands=${commands} /></li>`)}</ol>`
		: together ? html`<p>No single change is enough; all of these are, for <${Node} name=${together.node} />:</p><ul>${together.changes.map((change) => html`<li key=${change}>${change}</li>`)}</ul><${Copy} commands=${together.commands} />`
		: html`<p class="hint">${stuck ? "No single change that was tried helps." : "It fits without changes."}</p>`}</section>`;

export function Body({ decision, matrix, runnerUp, dry }) {
	const { options } = route.value;
	return html`
		${decision.preFilter?.rejected && html`<section class="panel"><h2>Rejected by PreFilter</h2><p><strong>${decision.preFilter.rejected.plugin}</strong>: ${(decision.preFilter.rejected.reasons || []).join(", ")}</p></section>`}
		<section class="panel stack"><h2>Nodes and plugins <small>${[decision.nodeCount != null && plural(decision.nodeCount, "node"), decision.evaluated != null && `${count(decision.evaluated)} evaluated`, decision.feasible != null && `${count(decision.feasible)} feasible`].filter(Boolean).join(", ")}</small></h2>
			${decision.chosen && decision.choice && html`<p class="hint">${CHOICES[decision.choice.reason] || decision.choice.reason}</p>`}
			${decision.preFilter?.narrowedTo && html`<p class="hint">${(decision.preFilter.narrowedBy || []).join(", ")} limited the search to ${plural(decision.preFilter.narrowedTo.length, "node")}.</p>`}
			${decision.nodesDropped && html`<p class="notice">${decision.nodesDropped}</p>`}
			<${Matrix} matrix=${matrix} chosen=${decision.chosen} picked=${options.why ?? null} onPick=${(why) => setOptions({ why })} /></section>
		${runnerUp && decision.chosen && html`<${RunnerUp} runnerUp=${runnerUp} chosen=${decision.chosen} />`}
		${decision.preemption && html`<${Preemption} preemption=${decision.preemption} outcome=${decision.message || ""} />`}
		${decision.extenders?.length > 0 && html`<section class="panel"><h2>Extenders</h2><ul class="list">${decision.extenders.map(({ url, verb, sent, kept, error }, number) => html`<li key=${number}><span class="grow"><code>${url}</code> ${verb}</span><span class="hint">${dry && sent == null ? "not called" : error || `${count(sent || 0)} sent, ${count(kept || 0)} kept`}</span></li>`)}</ul></section>`}`;
}
