#!/usr/bin/env node
// Runs the program of this name from the package of this platform: settled-linux-x64 and its like.
"use strict";

const { spawn } = require("node:child_process");
const path = require("node:path");

const name = path.basename(__filename, ".js");
const platform = `settled-${process.platform}-${process.arch}`;

let program;
try {
  program = path.join(path.dirname(require.resolve(`${platform}/package.json`)), "bin", name);
} catch {
  console.error(
    `${name}: there is no package ${platform}; it is an optional dependency, so npm must not omit those, ` +
      "or there is no build for this platform: docs/install.md says how to build it",
  );
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends its signals to both; what is sent to this process alone is handed on.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`${name}: ${program}: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
