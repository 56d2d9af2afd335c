/** Menus are `<details class="menu">`: one is open at a time, and Escape or a press elsewhere closes it. */

export function bindMenus(root = document) {
  const open = () => root.querySelectorAll("details.menu[open]");
  document.addEventListener("pointerdown", ({ target }) => {
    for (const menu of open()) if (!menu.contains(target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of open()) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
  for (const menu of root.querySelectorAll("details.menu")) {
    menu.addEventListener("toggle", () => {
      if (menu.open) for (const other of open()) if (other !== menu) other.open = false;
    });
  }
}
