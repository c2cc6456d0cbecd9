// What a view shows without data: loading, empty, an error, and the sign-in.
import { html, useState, Icon } from "../lib/ui.js";
import { access, signIn, signedIn } from "../lib/api.js";

export const Loading = ({ what = "Loading" }) => html`<div class="loading" role="status"><span class="unseen">${what}</span><i></i><i></i><i></i></div>`;

export const Empty = ({ title, children, icon = "cluster" }) => html`<div class="empty"><${Icon} name=${icon} /><h2>${title}</h2><div>${children}</div></div>`;

export const Problem = ({ error }) => html`<div class="notice bad" role="alert"><strong>${error.status === 404 ? "Not found:" : "Request failed:"}</strong> ${error.message}</div>`;

/** Shows an answer: `children(data)` if there is data, else the error or that it is loading. */
export function Answer({ of, what, children }) {
	if (of.data != null) return children(of.data);
	if (of.error) return html`<${Problem} error=${of.error} />`;
	return html`<${Loading} what=${what} />`;
}

export function SignIn() {
	const [token, setToken] = useState("");
	const { state, message } = access.value;
	const forbidden = state === "forbidden";
	return html`<main class="gate"><div class="panel">
		<img src="./icon.svg" alt="" width="44" height="44" />
		<h1>${forbidden ? "Access denied" : "Sign in to Kubestow"}</h1>
		${forbidden
			? html`<p class="notice bad" role="alert">${message}</p>
				<p>The API server does not allow you to read this page. A cluster administrator can grant access:</p>
				<pre>kubectl create clusterrole scheduler-page --verb=get,post --non-resource-url='/ui/api/*'
kubectl create clusterrolebinding scheduler-page --clusterrole=scheduler-page --user=YOU</pre>`
			: html`${signedIn() && html`<p class="notice bad" role="alert">The scheduler does not accept this token${message ? `: ${message}` : "."}</p>`}
				<p>The page needs a token.</p>
				<dl><dt>With kubestow up</dt><dd>open the address that it prints, which includes the token.</dd>
				<dt>In a cluster</dt><dd>use the token of an account with permission to <code>get</code> the path <code>/ui/api/*</code>, for example from</dd></dl>
				<pre>kubectl create token ACCOUNT</pre>`}
		<form onSubmit=${(event) => { event.preventDefault(); if (token.trim()) signIn(token.trim()); }}>
			<label for="token">Token</label>
			<div class="row"><input id="token" type="password" autocomplete="off" spellcheck="false" value=${token} onInput=${(event) => setToken(event.target.value)} />
			<button class="primary" type="submit">Sign in</button></div>
		</form>
		<p class="hint">The token is stored in this tab only, and only sent to this scheduler.</p>
	</div></main>`;
}
