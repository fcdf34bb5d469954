// Reads diagrams as one JSON object, by name, and writes them drawn. It is run in the folder of the tools.
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const tool = join(process.cwd(), "node_modules", "beautiful-mermaid", "dist", "index.js");
const { renderMermaidSVG } = await import(pathToFileURL(tool));
const drawn = {};
for (const [name, source] of Object.entries(JSON.parse(await text(process.stdin)))) {
  drawn[name] = renderMermaidSVG(source);
}
process.stdout.write(JSON.stringify(drawn));
