// Forwards TLS connections to a port of this machine: node tls.mjs PORT, in the folder of key.pem and cert.pem. Prints
// its own port, and exits when its standard input ends.
import fs from "node:fs";
import net from "node:net";
import tls from "node:tls";

const options = { key: fs.readFileSync("key.pem"), cert: fs.readFileSync("cert.pem") };
const server = tls.createServer(options, (from) => {
  const to = net.connect(Number(process.argv[2]), "127.0.0.1");
  from.pipe(to).pipe(from);
  for (const end of [from, to]) {
    end.on("error", () => {
      from.destroy();
      to.destroy();
    });
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit()).resume();
