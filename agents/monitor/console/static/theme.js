// Runs before the page is drawn, so that the page does not flash in the wrong theme.
(() => {
  const CHOICES = ["system", "light", "dark"];
  const root = document.documentElement;

  function stored() {
    try {
      const choice = localStorage.getItem("hb-theme");
      return CHOICES.includes(choice) ? choice : "system";
    } catch {
      return "system"; // storage may be switched off
    }
  }

  function apply(choice) {
    if (choice === "system") delete root.dataset.theme;
    else root.dataset.theme = choice;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${choice}`;
    document.dispatchEvent(new CustomEvent("hb-theme"));
  }

  let choice = stored();
  apply(choice);
  document.addEventListener("DOMContentLoaded", () => {
    apply(choice);
    document.getElementById("theme").addEventListener("click", () => {
      choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
      try {
        localStorage.setItem("hb-theme", choice);
      } catch {
        // kept for this visit only
      }
      apply(choice);
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(choice));
})();
