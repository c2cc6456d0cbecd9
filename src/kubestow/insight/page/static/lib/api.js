// Requests to the scheduler. The token is read from the address, stored for this tab, and removed from the address.
import { signal, useEffect, useRef, useState } from "./ui.js";

const KEY = "kubestow-token";
const PLACE = new URL("./api/v1", document.baseURI).href;

const brought = /^#(?:.*[?&])?token=([^&]+)/.exec(location.hash);
if (brought) {
	sessionStorage.setItem(KEY, decodeURIComponent(brought[1]));
	history.replaceState(null, "", location.pathname + location.search + (location.hash.startsWith("#/") ? location.hash.replace(/[?&]token=[^&]+/, "") : "#/cluster"));
}

/** The state of access: `open`, `unknown` (not authenticated) or `forbidden`, with the scheduler's message. */
export const access = signal({ state: "open", message: "" });

export function signIn(token) {
	sessionStorage.setItem(KEY, token);
	location.reload();
}
export const signedIn = () => sessionStorage.getItem(KEY) != null;

/** A path of names, encoded. */
export const path = (...names) => names.map(encodeURIComponent).join("/");

/** Returns a successful response; throws an Error with status and message for any other. */
export async function ask(place, parameters = {}, options = {}) {
	const url = new URL(place ? `${PLACE}/${place}` : PLACE);
	for (const [name, value] of Object.entries(parameters)) if (value != null && value !== "") url.searchParams.set(name, value);
	const token = sessionStorage.getItem(KEY);
	const headers = { ...(token && { Authorization: `Bearer ${token}` }), ...options.headers };
	const response = await fetch(url, { ...options, headers, cache: "no-store" });
	if (response.ok) return response;
	const { message = `${response.status} ${response.statusText}` } = await response.json().catch(() => ({}));
	if (response.status === 401 || (response.status === 403 && !options.method)) access.value = { state: response.status === 403 && token ? "forbidden" : "unknown", message };
	throw Object.assign(new Error(message), { status: response.status });
}

export const get = async (place, parameters, options) => (await ask(place, parameters, options)).json();

const answers = new Map();

/** The answer of a path: `{data, error}`. Requested again when `again` changes; the previous answer is shown meanwhile. */
export function useAnswer(place, parameters = {}, again = 0) {
	const [, redraw] = useState(0);
	const key = place == null ? null : `${place} ${JSON.stringify(parameters)}`;
	const state = useRef({}).current;
	state.key = key;
	state.again = again;
	useEffect(() => {
		if (key == null || state.loading === key) return;
		const read = async () => {
			const requested = state.again;
			state.loading = key;
			const answer = await get(place, parameters).then((data) => ({ data }), (error) => ({ error, data: error.status === 404 ? null : answers.get(key)?.data }));
			answers.delete(key);
			answers.set(key, answer);
			if (answers.size > 24) answers.delete(answers.keys().next().value);
			state.loading = null;
			if (state.key !== key || state.unmounted) return;
			redraw((times) => times + 1);
			if (state.again !== requested) await read();
		};
		read();
	}, [key, again]);
	useEffect(() => () => {
		state.unmounted = true;
	}, []);
	return answers.get(key) || {};
}
