// The search box for pods, nodes, plugins and reasons.
import { html, useEffect, useRef, useState, Icon } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { when } from "../lib/data.js";
import { link, nodeLink, podLink } from "../lib/route.js";
import { STATES } from "./common.js";
import { plural } from "../lib/format.js";

const PROMPT = "Find a pod, node, plugin or reason";
const listed = (found) => [
	...found.pods.map(({ pod, state, node }) => ({ kind: "pod", name: pod, detail: state === "placed" ? `on ${node}` : STATES[state]?.title || state, href: podLink(pod) })),
	...found.nodes.map((name) => ({ kind: "node", name, href: nodeLink(name) })),
	...found.plugins.map((name) => ({ kind: "plugin", name, href: link("configuration", [], { plugin: name }) })),
	...found.reasons.map(({ reason, count }) => ({ kind: "reason", name: reason, detail: plural(count, "pod"), href: link("queue", [], { reason }) })),
];

export function Search() {
	const box = useRef(null);
	const [text, setText] = useState("");
	const [found, setFound] = useState(null);
	const [active, setActive] = useState(0);
	useEffect(() => {
		const query = text.trim();
		if (!query) return setFound(null);
		const control = new AbortController();
		const timer = setTimeout(() => get("search", { q: query, ...when() }, { signal: control.signal }).then((answer) => {
			setFound(listed(answer));
			setActive(0);
		}, () => {}), 120);
		return () => {
			clearTimeout(timer);
			control.abort();
		};
	}, [text]);
	const close = () => {
		setText("");
		setFound(null);
	};
	const open = (item) => {
		location.hash = item.href;
		close();
		document.getElementById("main")?.focus();
	};
	const onKey = (event) => {
		if (event.key === "Escape") {
			close();
			box.current.blur();
		} else if (!found?.length) return;
		else if (event.key === "ArrowDown") setActive((active + 1) % found.length);
		else if (event.key === "ArrowUp") setActive((active + found.length - 1) % found.length);
		else if (event.key === "Enter") open(found[active]);
		else return;
		event.preventDefault();
	};
	return html`<div class="search" role="search" onFocusOut=${(event) => event.currentTarget.contains(event.relatedTarget) || setFound(null)}>
		<${Icon} name="search" />
		<input ref=${box} id="search" type="text" role="combobox" placeholder=${PROMPT} aria-label=${PROMPT} autocomplete="off" spellcheck="false"
			aria-expanded=${found != null} aria-controls="found" aria-autocomplete="list" aria-activedescendant=${found?.length ? `found-${active}` : null}
			value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey} />
		<kbd aria-hidden="true">/</kbd>
		${found && (found.length
			? html`<ul class="found" id="found" role="listbox" aria-label="Search results">${found.map((item, number) => html`<li role="option" id=${`found-${number}`} key=${number} aria-selected=${number === active}
					onPointerEnter=${() => setActive(number)} onPointerDown=${(event) => event.preventDefault()} onClick=${() => open(item)}>
					<span class="kind">${item.kind}</span><span class="name"><bdi>${item.name}</bdi></span>${item.detail && html`<span class="detail">${item.detail}</span>`}</li>`)}</ul>`
			: html`<div class="found" id="found" role="status"><p class="hint">No name or message contains “${text.trim()}”.</p></div>`)}
	</div>`;
}
