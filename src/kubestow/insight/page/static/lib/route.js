// Addresses: #/VIEW/PART?option=value. Every state of the page has one that can be shared.
import { signal } from "./ui.js";

const read = () => {
	const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
	const [view = "", ...parts] = path.split("/").map((part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	});
	return { path, view: view || "cluster", parts, options: Object.fromEntries(new URLSearchParams(query)) };
};

export const route = signal(read());
addEventListener("hashchange", () => {
	const { path } = route.value;
	route.value = read();
	if (path !== route.value.path) document.getElementById("main")?.scrollTo(0, 0);
});

/** The selected moment, in seconds since 1970; null is now. */
export const moment = () => (route.value.options.at ? Number(route.value.options.at) : null);

export function address(view, parts = [], options = {}) {
	const query = new URLSearchParams(Object.entries(options).filter(([, value]) => value != null && value !== "")).toString();
	return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${query && `?${query}`}`;
}

/** The address of another view, with the same moment and run. */
export const link = (view, parts = [], options = {}) => address(view, parts, { at: route.value.options.at, run: route.value.options.run, ...options });

export const go = (view, parts, options) => {
	location.hash = link(view, parts, options);
};

/** Changes options of the view, without a new entry in the browser's history. */
export function setOptions(changes) {
	const { view, parts, options } = route.value;
	history.replaceState(null, "", address(view, parts, { ...options, ...changes }));
	route.value = read();
}

export const podLink = (pod, options) => link("pod", pod.split("/"), options);
export const nodeLink = (node) => link("cluster", [], { node });
