// Events of the scheduler: one stream, which is reopened if it breaks.
import { signal } from "./ui.js";
import { ask } from "./api.js";

/** `{state: "still" | "connecting" | "live" | "lost", retryAt}` */
export const connection = signal({ state: "connecting" });

/** Yields the events of a response body: `{event, data}`; each field is one line. */
export async function* events(body) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			const parts = (rest + value).split("\n\n");
			rest = parts.pop();
			for (const part of parts) {
				const { event, data } = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/)));
				if (data) yield { event, data: JSON.parse(data) };
			}
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}

/** Follows a path and calls `onEvent` for every event; returns a function that stops it. */
export function follow(path, parameters, onEvent) {
	const control = new AbortController();
	const run = async () => {
		for (let failures = 0; !control.signal.aborted; ) {
			try {
				if (!failures) connection.value = { state: "connecting" };
				const response = await ask(path, parameters(), { signal: control.signal, headers: { Accept: "text/event-stream" } });
				failures = 0;
				connection.value = { state: "live" };
				for await (const event of events(response.body)) {
					if (control.signal.aborted) return;
					onEvent(event);
				}
				failures = 1;
			} catch (error) {
				if (control.signal.aborted || error.status === 401 || error.status === 403) return;
				failures += 1;
			}
			const wait = Math.min(10, 0.5 * 2 ** Math.min(failures, 5));
			connection.value = { state: "lost", retryAt: Date.now() + wait * 1000 };
			await new Promise((resolve) => setTimeout(resolve, wait * 1000));
		}
	};
	run();
	return () => control.abort();
}
