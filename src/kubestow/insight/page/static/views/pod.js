// Decision: the outcome for one pod, its reasons, and changes that would help.
import { html, useRef } from "../lib/ui.js";
import { path, useAnswer } from "../lib/api.js";
import { about, now, queue, seconds, when } from "../lib/data.js";
import { moment, route, setOptions } from "../lib/route.js";
import { clock, count, duration, plural } from "../lib/format.js";
import { Body, InTheWay, WouldFit } from "../parts/decision.js";
import { Answer, Empty, Loading, Problem } from "../parts/states.js";
import { Moves, Strip } from "../parts/strip.js";
import { Name, Node, Outcome, State, waited } from "../parts/common.js";

function Attempts({ attempts, shown }) {
	if (attempts.length < 2) return null;
	const recent = attempts.slice(-12);
	return html`<div class="row"><span class="hint" id="attempts">Attempts</span><div class="segments" role="group" aria-labelledby="attempts">
		${recent.map(({ id, time, outcome }) => html`<button key=${id} aria-pressed=${id === shown} title="${outcome}, ${clock(time)}" onClick=${() => setOptions({ id, why: null })}>${clock(time)}</button>`)}</div></div>`;
}

function Facts({ decision, waits, pending }) {
	const { profile, priority, time, seconds: took, queue: queued, binding, rejectedBy } = decision;
	return html`<section class="panel stack"><h2>Timeline</h2>
		<${Strip} decision=${decision} />
		<dl class="facts">
			${waits && html`<dt>Now</dt><dd><${State} of=${waits.state} /> ${waits.retry != null && html`<span class="hint">next retry ${waits.retry <= now() ? "is due" : `in ${duration(waits.retry - now())}`}</span>`}</dd>`}
			<dt>Decided</dt><dd>${clock(time)}, in ${duration(took)}</dd>
			${queued?.attempts != null && html`<dt>Attempts</dt><dd>${count(queued.attempts)}, the first at ${clock(queued.firstAttempt)}</dd>`}
			<dt>Waited</dt><dd>${duration(waits && pending ? Math.max(0, now() - waits.created) : waited(decision))}</dd>
			${binding && html`<dt>Binding</dt><dd>${binding.state}${binding.waitsFor?.length ? `, waits for ${binding.waitsFor.join(", ")}` : ""}${binding.error ? `: ${binding.error}` : ""}</dd>`}
			${rejectedBy?.length > 0 && html`<dt>Rejected by</dt><dd>${rejectedBy.join(", ")}</dd>`}
			<dt>Profile</dt><dd>${profile || "–"}</dd><dt>Priority</dt><dd>${count(priority || 0)}</dd>
		</dl>
		${queued?.history?.length > 0 && html`<details><summary>${plural(queued.history.length, "queue move")}</summary><${Moves} history=${queued.history} /></details>`}</section>`;
}

/** Changes that would help, tried in a copy of the cluster, which takes seconds. */
function Help({ names, decided }) {
	const explained = useAnswer(path("explain", ...names), { run: when().run }, decided);
	if (explained.data) return html`<div class="stack"><${InTheWay} causes=${explained.data.causes} /><${WouldFit} changes=${explained.data.wouldFitIf || []} stuck=${!explained.data.decision.chosen} together=${explained.data.together} /></div>`;
	if (explained.error) return explained.error.status === 404 ? null : html`<section class="panel"><h2>Would fit if</h2><${Problem} error=${explained.error} /></section>`;
	return html`<section class="panel"><h2>Would fit if</h2><p class="hint">Trying changes in a copy of the cluster …</p><${Loading} what="Trying changes" /></section>`;
}

export function PodDecision() {
	const { parts, options } = route.value;
	const pod = parts.join("/");
	const row = queue.value?.rows.find((waiting) => waiting.pod === pod);
	const waits = moment() == null && row, live = moment() == null && options.id == null;
	// Refresh while the pod is binding, because it leaves the queue before that.
	const last = useRef();
	const answer = useAnswer(path("decisions", ...parts), { id: options.id, ...when() }, live ? `${row?.attempts} ${row?.state} ${last.current === "binding" && seconds.value}` : 0);
	last.current = answer.data?.decision.binding?.state;
	if (answer.error?.status === 404 && !answer.data) {
		return html`<h1><${Name}>${pod}<//></h1>
			${waits && html`<p class="row"><${State} of=${waits.state} /> ${waits.reason}</p>`}
			<${Empty} title="No decision about this pod" icon="decisions">No attempt to schedule it is recorded: there was none yet, or its record was dropped.<//>`;
	}
	return html`<${Answer} of=${answer} what="Reading the decision">${({ decision, attempts, matrix, runnerUp }) => {
		const pending = !decision.chosen && live;
		return html`
			<div class="title"><div><h1><${Name}>${decision.pod}<//></h1>
				<p class="row" aria-live="polite"><${Outcome} of=${decision.outcome} />
					${decision.chosen && html`<span>${(decision.binding?.state || "bound") === "bound" ? "on" : "assigned to"} <${Node} name=${decision.chosen} /></span>`}
					${decision.nominatedNode && !decision.chosen && html`<span>nominated for <${Node} name=${decision.nominatedNode} /></span>`}</p></div>
				<${Attempts} attempts=${attempts} shown=${decision.id} /></div>
			${decision.message && html`<p class="notice bad">${decision.message}</p>`}
			<div class="columns">
				${pending && (about.value.can.explain ? html`<${Help} names=${parts} decided=${decision.id} />` : html`<section class="panel"><h2>Would fit if</h2><p class="hint">Not available: ${about.value.cannot}</p></section>`)}
				<${Facts} decision=${decision} waits=${waits} pending=${pending} />
			</div>
			<${Body} decision=${decision} matrix=${matrix} runnerUp=${runnerUp} />`;
	}}<//>`;
}
