// The frame of the page: the header, the list of views, and the current view.
import { html, mount, signal, useEffect, useRef, Icon } from "./lib/ui.js";
import { access } from "./lib/api.js";
import { about, failure, queue, seconds, start } from "./lib/data.js";
import { connection } from "./lib/live.js";
import { address, moment, go, link, route, setOptions } from "./lib/route.js";
import { theme, toggleTheme } from "./lib/theme.js";
import { clock, count } from "./lib/format.js";
import { Search } from "./parts/search.js";
import { Empty, Loading, SignIn } from "./parts/states.js";
import { Cluster } from "./views/cluster.js";
import { Queue } from "./views/queue.js";
import { Decisions } from "./views/decisions.js";
import { PodDecision } from "./views/pod.js";
import { Groups } from "./views/groups.js";
import { Time } from "./views/time.js";
import { Compare } from "./views/compare.js";
import { Try } from "./views/try.js";
import { Configuration } from "./views/configuration.js";

const VIEWS = {
	cluster: { title: "Cluster", key: "c", view: Cluster },
	queue: { title: "Queue", key: "q", view: Queue },
	decisions: { title: "Decisions", key: "d", view: Decisions },
	groups: { title: "Groups", key: "p", view: Groups },
	time: { title: "Time", key: "t", view: Time },
	compare: { title: "Compare", key: "v", view: Compare },
	try: { title: "Try a pod", key: "y", view: Try },
	configuration: { title: "Configuration", key: "f", view: Configuration },
	pod: { title: "Decision", under: "decisions", view: PodDecision },
};

const keysShown = signal(false);

/** Keyboard shortcuts outside of input fields: / focuses the search, ? shows the keys, g and a letter opens a view. */
function useKeys() {
	useEffect(() => {
		let pressedG = 0;
		const onKey = (event) => {
			if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input,textarea,select,dialog")) return;
			const view = Object.entries(VIEWS).find(([, { key }]) => key === event.key)?.[0];
			if (event.key === "/") document.getElementById("search")?.focus();
			else if (event.key === "?") keysShown.value = true;
			else if (event.key === "l" && moment() != null) setOptions({ at: null });
			else if (event.key === "g") {
				pressedG = Date.now();
				return;
			} else if (view && Date.now() - pressedG < 1500) go(view);
			else return;
			event.preventDefault();
		};
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, []);
}

function Keys() {
	const ref = useRef(null);
	useEffect(() => {
		if (keysShown.value) ref.current.showModal();
	}, [keysShown.value]);
	return html`<dialog ref=${ref} aria-label="Keys" onClose=${() => { keysShown.value = false; }}>
		<h2>Keys</h2>
		<dl><dt><kbd>/</kbd></dt><dd>search</dd>
			${Object.values(VIEWS).filter(({ key }) => key).map(({ key, title }) => html`<dt key=${key}><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${title}</dd>`)}
			<dt><kbd>l</kbd></dt><dd>back to now</dd><dt>arrows, <kbd>Enter</kbd></dt><dd>move and open in maps and tables</dd></dl>
		<button onClick=${() => ref.current.close()}>Close</button>
	</dialog>`;
}

function Status() {
	const { state } = connection.value;
	const [dot, text] = moment() != null ? ["", `At ${clock(moment())}`]
		: { live: ["live", "Live"], lost: ["lost", "Connection lost"], connecting: ["", "Connecting"], still: ["", "Recorded"] }[state];
	return html`<div class="status" role="status"><i class=${`dot ${dot}`}></i><span>${text}</span></div>`;
}

function Banners() {
	const { state, retryAt } = connection.value;
	const wait = Math.max(0, Math.ceil(retryAt / 1000 - seconds.value));
	return html`
		${state === "lost" && html`<div class="banner lost" role="alert"><strong>The scheduler does not answer.</strong> The page shows the last data received. Retrying${wait ? ` in ${wait} s` : ""} …</div>`}
		${moment() != null && html`<div class="banner past"><strong>State at ${clock(moment())}.</strong> ${about.value.live && html`<span>The cluster may have changed since.</span>`}<button onClick=${() => setOptions({ at: null })}>${about.value.live ? "Back to now" : "To the end"}</button></div>`}`;
}

function Runs() {
	const { runs } = about.value;
	if (runs.length < 2) return html`<span class="about">${about.value.name}</span>`;
	return html`<label class="field"><span class="unseen">Run</span><select value=${route.value.options.run || "0"} onChange=${(event) => {
		setOptions({ run: event.target.value, at: null });
		start();
	}}>${runs.map((name, number) => html`<option key=${number} value=${number}>${name}</option>`)}</select></label>`;
}

function Page() {
	useKeys();
	const known = VIEWS[route.value.view];
	const { view: View, title, under } = known || {};
	useEffect(() => {
		document.title = `${[...route.value.parts, title].filter(Boolean).join(" · ")} · Kubestow`;
	}, [route.value, title]);
	if (access.value.state !== "open") return html`<${SignIn} />`;
	const current = under || route.value.view;
	const waiting = queue.value?.rows.length;
	return html`<div class="shell">
		<button class="skip" onClick=${() => document.getElementById("main").focus()}>Skip to the view</button>
		<header class="bar">
			<a class="brand" href=${address("cluster")}><img src="./icon.svg" alt="" width="28" height="28" /><span>Kubestow</span></a>
			${about.value && html`<${Runs} />`}
			<${Search} />
			<${Status} />
			<button class="plain" onClick=${toggleTheme} aria-label=${theme.value === "dark" ? "Light colours" : "Dark colours"}><${Icon} name=${theme.value === "dark" ? "sun" : "moon"} /></button>
		</header>
		<nav class="rail" aria-label="Views">
			${Object.entries(VIEWS).filter(([, { key }]) => key).map(([name, { title: label }]) => html`<a key=${name} href=${link(name)} aria-current=${name === current ? "page" : null}>
				<${Icon} name=${name} /><span>${label}</span>${name === "queue" && waiting > 0 && html`<span class="badge">${count(waiting)}</span>`}</a>`)}
			<div class="foot">${about.value && `Kubestow ${about.value.kubestow}`}<br />Press <kbd>?</kbd> for keys</div>
		</nav>
		<main class="view" id="main" tabindex="-1">
			${about.value && html`<${Banners} />`}
			${!about.value ? failure.value
					? html`<${Empty} title="The scheduler does not answer" icon="queue">${failure.value.message}. The page retries every few seconds.<//>`
					: html`<${Loading} what="Connecting to the scheduler" />`
				: View ? html`<${View} key=${route.value.view} />`
				: html`<${Empty} title="This view does not exist" icon="search"><a href=${address("cluster")}>Open the cluster view</a><//>`}
		</main>
		<${Keys} />
	</div>`;
}

document.querySelector("#page > .boot").remove();
mount(Page, document.getElementById("page"));
start();
