// Try a pod: where would it go, and why? Nothing is created.
import { html, useState } from "../lib/ui.js";
import { ask } from "../lib/api.js";
import { about } from "../lib/data.js";
import { Body, WouldFit } from "../parts/decision.js";
import { Empty, Loading, Problem } from "../parts/states.js";
import { Name, Node, Outcome } from "../parts/words.js";

const EXAMPLE = `apiVersion: v1
kind: Pod
metadata:
  name: example
spec:
  containers:
  - name: app
    image: nginx
    resources:
      requests:
        cpu: 500m
        memory: 256Mi
`;
const KEY = "kubestow-try";

const Tried = ({ item }) => {
  const { decision, matrix, runnerUp, wouldFitIf, stuck, notes = [] } = item;
  return html`<section class="stack" aria-label=${decision.pod}>
    <div><h2><${Name}>${decision.pod}<//></h2><p class="row"><${Outcome} of=${decision.outcome} />${decision.chosen ? html`<span>would go to <${Node} name=${decision.chosen} /></span>` : html`<span>would fit nowhere</span>`}</p></div>
    ${decision.message && html`<p class="notice bad">${decision.message}</p>`}
    ${!decision.chosen && html`<${WouldFit} changes=${wouldFitIf || []} stuck=${stuck} />`}
    <${Body} decision=${decision} matrix=${matrix} runnerUp=${runnerUp} dry />
    ${notes.map((note) => html`<p class="hint" key=${note}>${note}</p>`)}</section>`;
};

export function Try() {
  const [text, setText] = useState(sessionStorage.getItem(KEY) || EXAMPLE);
  const [result, setResult] = useState({});
  const attempt = (event) => {
    event?.preventDefault();
    sessionStorage.setItem(KEY, text);
    setResult({ loading: true });
    ask("try", {}, { method: "POST", body: text, headers: { "Content-Type": "application/yaml" } }).then((response) => response.json()).then((data) => setResult({ data }), (error) => setResult({ error }));
  };
  if (!about.value.can.try) return html`<h1>Try a pod</h1><${Empty} title="Not here" icon="try">A pod can be tried at a live scheduler.<//>`;
  return html`<div class="title"><div><h1>Try a pod</h1><p>Where would it go, and why? Nothing is created.</p></div></div>
    <form class="panel stack" onSubmit=${attempt} onKeyDown=${(event) => event.ctrlKey && event.key === "Enter" && attempt(event)}>
      <label for="pod"><h2>Pods as YAML or JSON</h2></label>
      <textarea id="pod" class="code" rows="14" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
      <div class="row"><button class="primary" type="submit" disabled=${result.loading || !text.trim()}>${result.loading ? "Trying …" : "Try"}</button><span class="hint">or Ctrl+Enter</span></div>
    </form>
    <div class="stack" aria-live="polite">${result.error && html`<${Problem} error=${result.error} />`}${result.loading && html`<${Loading} what="Trying" />`}
      ${result.data?.items.map((item, number) => html`<${Tried} key=${number} item=${item} />`)}</div>`;
}
