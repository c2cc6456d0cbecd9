// Light or dark theme: the user's choice, or else the preference of the system.
import { signal } from "./ui.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => localStorage.getItem("kubestow-theme");
export const theme = signal("light");

function apply() {
	const name = chosen() || (system.matches ? "dark" : "light");
	document.documentElement.dataset.theme = name;
	theme.value = name;
}
system.addEventListener("change", apply);
apply();

export function toggleTheme() {
	const other = theme.value === "dark" ? "light" : "dark";
	if (other === (system.matches ? "dark" : "light")) localStorage.removeItem("kubestow-theme");
	else localStorage.setItem("kubestow-theme", other);
	apply();
}
