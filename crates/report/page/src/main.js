/**
 * Starts the page.
 */

import { backendOf } from "./data/backend.js";
import { loadReport } from "./data/document.js";
import { printable } from "./print.js";
import { Shell } from "./shell.js";
import { Announcer } from "./ui/announce.js";
import { fill, h } from "./ui/dom.js";
import { Theme } from "./ui/theme.js";

async function start() {
  const root = /** @type {HTMLElement} */ (document.getElementById("app"));
  const theme = new Theme();
  try {
    const report = await loadReport();
    new Shell({ report, backend: backendOf(report), theme, announcer: new Announcer() }, root);
    printable(report);
    document.documentElement.dataset.state = "ready";
  } catch (error) {
    fill(
      root,
      h(
        "main",
        { class: "broken" },
        h("h1", null, "The report cannot be shown"),
        h("p", { role: "alert" }, error instanceof Error ? error.message : String(error)),
      ),
    );
    document.documentElement.dataset.state = "failed";
  }
}

start();
