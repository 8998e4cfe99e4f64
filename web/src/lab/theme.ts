// Whether the page gpulse is in is dark.

/** Tell whether the page around is dark: JupyterLab, VS Code and Colab each say it in their own way. */
export function isDark(): boolean {
  const { body, documentElement } = document;
  if (body.dataset["jpThemeLight"]) return body.dataset["jpThemeLight"] === "false";
  if (body.dataset["vscodeThemeKind"]) return !body.dataset["vscodeThemeKind"].includes("light");
  if (documentElement.getAttribute("theme")) return documentElement.getAttribute("theme") === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
