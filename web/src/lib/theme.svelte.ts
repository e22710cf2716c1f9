/** Light or dark, as the system says or as the reader chooses. */

type Choice = "auto" | "light" | "dark";
const KEY = "elmore-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const theme = $state({
  choice: (localStorage.getItem(KEY) as Choice | null) ?? ("auto" as Choice),
  isDark: false,
});

function apply(): void {
  theme.isDark = theme.choice === "auto" ? system.matches : theme.choice === "dark";
  document.documentElement.dataset.theme = theme.isDark ? "dark" : "light";
}

system.addEventListener("change", apply);
apply();

export function toggleTheme(): void {
  theme.choice = theme.isDark ? "light" : "dark";
  localStorage.setItem(KEY, theme.choice);
  apply();
}
