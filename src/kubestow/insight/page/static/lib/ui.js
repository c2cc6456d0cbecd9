// The base of all modules: markup, hooks, and values that redraw the page.
import { h, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export const html = htm.bind(h);

let drawPage = () => {};
let drawing = false;

/** A value of the page: a change redraws the page, at most once per frame. */
export const signal = (value) => ({
	get value() {
		return value;
	},
	set value(next) {
		if (next === value) return;
		value = next;
		if (!drawing) requestAnimationFrame(() => {
			drawing = false;
			drawPage();
		});
		drawing = true;
	},
});

export function mount(page, place) {
	drawPage = () => render(html`<${page} />`, place);
	drawPage();
}

/** Joins class names; conditions that are false are skipped. */
export const cls = (...names) => names.filter(Boolean).join(" ");

/** A colour of theme.css, for a canvas. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const PICTURES = {
	cluster: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
	queue: "M4 6h16M4 12h16M4 18h10",
	decisions: "M12 3v6m0 0-6 6v6m6-12 6 6v6",
	groups: "M9 4h6v6H9zM3 14h6v6H3zM15 14h6v6h-6z",
	time: "M3 17l5-6 4 4 8-10",
	compare: "M8 4v16M16 4v16M3 8h10M11 16h10",
	try: "M5 4h9l5 5v11H5zM9 14l2 2 4-4",
	configuration: "M4 7h10m4 0h2M4 17h2m4 0h10M14 5v4M8 15v4",
	search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13Zm5-1.5L21 21",
	sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Zm0-6v3m0 14v3M2 12h3m14 0h3M5 5l2 2m10 10 2 2M5 19l2-2M17 7l2-2",
	moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10Z",
	close: "M6 6l12 12M18 6 6 18",
};

/** A decorative icon beside a text. */
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PICTURES[name]} /></svg>`;
