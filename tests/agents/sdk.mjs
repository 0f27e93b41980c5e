// Plays a review with the official TypeScript SDK: node sdk.mjs SETTLED ROOT, with a daemon that serves ROOT. Prints
// the most tokens that the definitions can have, at three bytes each.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, root] = process.argv.slice(2);

async function connect(agent) {
  const client = new Client({ name: "sdk", version: "1" });
  await client.connect(new StdioClientTransport({ command, args: ["mcp", "--root", root, "--agent", agent] }));
  return client;
}

async function call(client, name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  return { isError: result.isError === true, ...JSON.parse(result.content[0].text) };
}

const author = await connect("claude");
const reviewer = await connect("codex");
const { tools } = await author.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ["next", "show", "send", "wait", "why"]);
assert.ok(author.getInstructions().length > 0);
const request = { type: "review_request", to: "codex", pr: "86", fields: { branch: "b", diff_summary: "d" } };
assert.equal((await call(author, "send", request)).data.outcome, "accepted");
assert.equal((await call(reviewer, "wait", { seconds: 30 })).data.messages.length, 1);
const empty = await call(reviewer, "send", { type: "feedback", pr: "86" });
assert.ok(empty.isError && empty.error.code === "feedback_empty", JSON.stringify(empty));
assert.equal((await call(reviewer, "send", { type: "lgtm", pr: "86" })).data.review.phase, "approved");
assert.equal((await call(author, "wait", { for: "verdict", pr: "86", seconds: 30 })).data.messages.length, 1);
await author.close();
await reviewer.close();
console.log(Math.ceil(JSON.stringify(tools).length / 3));
