// A form that sends YAML to the scheduler for a dry run.
import { html, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { when } from "../lib/data.js";
import { Loading, Problem } from "./states.js";

/** `place` is the path that receives the text; `children(answer)` shows its answer. */
export function YamlForm({ place, parameters, text, onText, label, verb, hint, rows, children }) {
	const [result, setResult] = useState({});
	const send = (event) => {
		event.preventDefault();
		setResult({ loading: true });
		get(place, { ...parameters, run: when().run }, { method: "POST", body: text, headers: { "Content-Type": "application/yaml" } }).then((data) => setResult({ data }), (error) => setResult({ error }));
	};
	return html`<form class="panel stack" onSubmit=${send} onKeyDown=${(event) => event.ctrlKey && event.key === "Enter" && send(event)}>
			<label for="yaml"><h2>${label}</h2></label>${hint && html`<p class="hint">${hint}</p>`}
			<textarea id="yaml" class="code" rows=${rows} spellcheck="false" value=${text} onInput=${(event) => onText(event.target.value)}></textarea>
			<div class="row"><button class="primary" disabled=${result.loading || !text.trim()}>${verb}</button><span class="hint">or Ctrl+Enter</span></div>
		</form>
		<div class="stack" aria-live="polite">${result.error ? html`<${Problem} error=${result.error} />` : result.loading ? html`<${Loading} what=${verb} />` : result.data && children(result.data)}</div>`;
}
