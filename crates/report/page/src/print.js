/**
 * What goes to paper: overview, functions, interrupts and endings, whatever view is on
 * the screen. It is built when printing starts and removed afterwards.
 */

import { fill, h } from "./ui/dom.js";
import { endingsParts } from "./views/endings.js";
import { functionsTable } from "./views/functions.js";
import { interruptsParts } from "./views/interrupts.js";
import { overviewParts } from "./views/overview.js";

/** Last instructions of each track that are printed. */
const INSTRUCTIONS = 40;

/** @param {import("./data/document.js").Report} report */
export function printable(report) {
  const paper = h("div", { class: "paper" });
  document.body.append(paper);
  addEventListener("beforeprint", () => {
    fill(
      paper,
      report.runs.map((run) => [
        h("h1", null, run.name),
        overviewParts(run),
        h("h2", null, "Functions"),
        printedFunctions(run),
        h("h2", null, "Interrupts and traps"),
        interruptsParts(run),
        h("h2", null, "How it ended"),
        endingsParts(run, INSTRUCTIONS),
      ]),
    );
  });
  addEventListener("afterprint", () => fill(paper));
}

/** @param {import("./data/run.js").Run} run */
function printedFunctions(run) {
  const table = functionsTable(run);
  table.show((row) => run.functions.self[row] > 0);
  return table.printed();
}
