/** Serves a page, the client's modules and the server's interface from one origin, as a proxy before it does. */

import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";

const [target, modules] = process.argv.slice(2);
const page = '<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:,"><h1>Page</h1></html>';

const server = createServer(async (asked, answer) => {
  const path = new URL(asked.url, "http://front").pathname;
  if (path === "/") return answer.writeHead(200, { "content-type": "text/html" }).end(page);
  const name = /^\/client\/([a-z]+\.js)$/.exec(path)?.[1];
  if (name !== undefined) {
    return answer.writeHead(200, { "content-type": "text/javascript" }).end(await readFile(`${modules}/${name}`));
  }
  const passed = request(new URL(asked.url, target), { method: asked.method, headers: asked.headers }, (theirs) => {
    answer.writeHead(theirs.statusCode, theirs.headers);
    theirs.pipe(answer);
  });
  answer.on("close", () => passed.destroy());
  passed.on("error", () => answer.destroy());
  asked.pipe(passed);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
