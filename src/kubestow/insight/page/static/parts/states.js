// What is shown where there is nothing to show: loading, empty, an error, and the way in.
import { html, useState, Icon } from "../lib/ui.js";
import { access, signIn, signedIn } from "../lib/api.js";

export const Loading = ({ what = "Loading" }) => html`<div class="loading" role="status"><span class="unseen">${what}</span><i></i><i></i><i></i></div>`;

export const Empty = ({ title, children, icon = "cluster" }) => html`<div class="empty"><${Icon} name=${icon} /><h2>${title}</h2><div>${children}</div></div>`;

export const Problem = ({ error }) => html`<div class="notice bad" role="alert"><strong>${error.status === 404 ? "Not found." : "That did not work."}</strong> ${error.message}</div>`;

/** The three states of an answer; `children(data)` draws the fourth. */
export function Answer({ of, what, children }) {
	if (of.data != null) return children(of.data);
	if (of.error) return html`<${Problem} error=${of.error} />`;
	return html`<${Loading} what=${what} />`;
}

export function SignIn() {
	const [token, setToken] = useState("");
	const { state, message } = access.value;
	const refused = state === "refused";
	return html`<main class="gate"><div class="panel">
		<img src="./icon.svg" alt="" width="44" height="44" />
		<h1>${refused ? "This token may not look" : "Sign in to Kubestow"}</h1>
		${refused
			? html`<p class="notice bad" role="alert">${message}</p>
				<p>The API server does not let you read this page. Someone who administers the cluster can allow it:</p>
				<pre>kubectl create clusterrole scheduler-page --verb=get,post --non-resource-url='/ui/api/*'
kubectl create clusterrolebinding scheduler-page --clusterrole=scheduler-page --user=YOU</pre>`
			: html`${signedIn() && html`<p class="notice bad" role="alert">The scheduler does not accept this token${message ? `: ${message}` : "."}</p>`}
				<p>It wants the token with which you would ask the API server.</p>
				<dl><dt>With kubestow up</dt><dd>open the address that it prints; the token is in it.</dd>
				<dt>In a cluster</dt><dd>take the token of an account that may <code>get</code> the path <code>/ui/api/*</code>, for example from</dd></dl>
				<pre>kubectl create token ACCOUNT</pre>`}
		<form onSubmit=${(event) => { event.preventDefault(); if (token.trim()) signIn(token.trim()); }}>
			<label for="token">Token</label>
			<div class="row"><input id="token" type="password" autocomplete="off" spellcheck="false" value=${token} onInput=${(event) => setToken(event.target.value)} />
			<button class="primary" type="submit">Sign in</button></div>
		</form>
		<p class="hint">It is kept in this tab only, and sent to nobody but this scheduler.</p>
	</div></main>`;
}
