// Compare: two runs, or the configuration in force with another one: what moved, grouped by why.
import { html, useEffect, useState } from "../lib/ui.js";
import { ask, get, useAnswer } from "../lib/api.js";
import { about } from "../lib/data.js";
import { route, setOptions } from "../lib/route.js";
import { count, figure, percent, plural } from "../lib/format.js";
import { Answer, Empty, Loading, Problem } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Node, Pod } from "../parts/words.js";

const KINDS = { score: ["score", "accent"], refused: ["refused", "bad"], placed: ["only B places", "ok"], unplaced: ["only A places", "warn"], tie: ["tie", ""], unknown: ["unknown", ""] };

const nodeOr = (name, message) => (name ? html`<${Node} name=${name} focusable=${false} />` : html`<span class="hint" title=${message}>nowhere</span>`);
const columns = (a, b) => [
  { key: "pod", title: "Pod", width: "minmax(160px,2fr)", small: "minmax(100px,1fr)", narrow: true, sort: ({ pod }) => pod, cell: ({ pod }) => html`<${Pod} pod=${pod} focusable=${false} />` },
  { key: "a", title: a, width: "minmax(110px,1fr)", narrow: true, sort: (row) => row.a || "", cell: (row) => nodeOr(row.a, row.message) },
  { key: "b", title: b, width: "minmax(110px,1fr)", narrow: true, sort: (row) => row.b || "", cell: (row) => nodeOr(row.b, row.message) },
  { key: "by", title: "Score changed by", width: "minmax(160px,2fr)", cell: ({ by, message }) => {
    const words = Object.entries(by || {}).sort((one, other) => Math.abs(other[1]) - Math.abs(one[1])).map(([plugin, points]) => `${plugin} ${points > 0 ? "+" : ""}${figure(points)}`).join(", ") || message || "–";
    return html`<span title=${words}>${words}</span>`;
  } },
];

function Difference({ result }) {
  const { a, b, pods, moved, figures = [], groups } = result;
  const { options } = route.value;
  return html`
    <dl class="tiles"><div class="tile"><dt>Pods compared</dt><dd>${count(pods)}</dd></div>
      <div class="tile"><dt>Moved</dt><dd>${count(moved)} <small>${pods ? percent(moved / pods) : ""}</small></dd></div>
      <div class="tile"><dt>A</dt><dd class="what"><bdi>${a}</bdi></dd></div><div class="tile"><dt>B</dt><dd class="what"><bdi>${b}</bdi></dd></div></dl>
    ${figures.length > 0 && html`<section class="panel"><h2>Side by side</h2><div class="scroll" tabindex="0" role="region" aria-label="Figures side by side"><table><thead><tr><th scope="col">Figure</th><th scope="col" class="end">A</th><th scope="col" class="end">B</th><th scope="col" class="end">Difference</th></tr></thead>
      <tbody>${figures.map(({ name, a: one, b: other }) => html`<tr key=${name}><th scope="row">${name}</th><td class="end">${figure(one)}</td><td class="end">${figure(other)}</td><td class="end">${one == null || other == null ? "–" : `${other > one ? "+" : ""}${figure(other - one)}`}</td></tr>`)}</tbody></table></div></section>`}
    ${groups.length === 0 ? html`<${Empty} title="Nothing moved" icon="compare">Both put every pod in the same place.<//>`
    : groups.map(({ why, kind, count: size, pods: some }, number) => html`<section class="panel group" key=${why + kind}><details open=${options.why != null ? options.why === String(number) : number === 0} onToggle=${(event) => event.target.open && setOptions({ why: number })}>
      <summary><span class=${`badge ${KINDS[kind]?.[1] ?? ""}`}>${KINDS[kind]?.[0] || kind}</span><b>${count(size)}</b><span class="grow">${why}</span></summary>
      <${Table} id=${`moved-${number}`} label=${why} rows=${some} columns=${columns("A", "B")} />${some.length < size && html`<p class="hint">${plural(size - some.length, "more pod")} not listed.</p>`}</details></section>`)}`;
}

/** Another configuration, tried against the one in force. */
function Another() {
  const [text, setText] = useState(null);
  const [result, setResult] = useState({});
  useEffect(() => {
    get("configuration").then(({ yaml }) => setText(yaml), (error) => setResult({ error }));
  }, []);
  const compare = (event) => {
    event?.preventDefault();
    setResult({ loading: true });
    ask("compare", { pods: 100 }, { method: "POST", body: text, headers: { "Content-Type": "application/yaml" } }).then((response) => response.json()).then((data) => setResult({ data }), (error) => setResult({ error }));
  };
  return html`<form class="panel stack" onSubmit=${compare} onKeyDown=${(event) => event.ctrlKey && event.key === "Enter" && compare(event)}>
      <label for="other"><h2>Another configuration</h2></label>
      <p class="hint">Change it, and see which of the pods that wait or were placed last would go elsewhere. Each is tried under both; nothing is changed.</p>
      ${text == null && !result.error ? html`<${Loading} what="Reading the configuration in force" />` : html`<textarea id="other" class="code" rows="16" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>`}
      <div class="row"><button class="primary" type="submit" disabled=${result.loading || text == null}>${result.loading ? "Comparing …" : "Compare"}</button><span class="hint">or Ctrl+Enter</span></div>
    </form>
    <div class="stack" aria-live="polite">${result.error && html`<${Problem} error=${result.error} />`}${result.loading && html`<${Loading} what="Comparing" />`}${result.data && html`<${Difference} result=${result.data} />`}</div>`;
}

const TwoRuns = () => html`<${Answer} of=${useAnswer("compare")} what="Comparing the runs">${(result) => html`<${Difference} result=${result} />`}<//>`;

export function Compare() {
  const { runs, can } = about.value;
  return html`<div class="title"><div><h1>Compare</h1><p>${runs.length > 1 ? "Two runs: what moved, and why." : "Two configurations: what would move, and why."}</p></div></div>
    ${runs.length > 1 ? html`<${TwoRuns} />` : can.compare ? html`<${Another} />`
      : html`<${Empty} title="Nothing to compare" icon="compare">Give <code>kubestow view</code> two results, and they are shown side by side here.<//>`}`;
}
