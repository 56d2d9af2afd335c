// Runs before the first paint (a plain, blocking script): the visitor's choice, else the system's.
// Whoever draws with colours listens for "themechange" on document.
(() => {
  const KEY = "lockstep-theme";
  const root = document.documentElement;
  const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage may be forbidden; the choice then lasts as long as the page
    }
  }

  function apply(theme) {
    root.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("themechange", { detail: { theme } }));
  }

  function toggle() {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // see above
    }
    apply(theme);
  }

  apply(chosen() ?? (systemIsDark.matches ? "dark" : "light"));
  systemIsDark.addEventListener("change", () => {
    if (!chosen()) apply(systemIsDark.matches ? "dark" : "light");
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-theme-toggle]")) toggle();
  });
})();
