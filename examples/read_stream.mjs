// Reads an AgJSON stream with nothing but the platform: node examples/read_stream.mjs URL "What is up?"
// The same lines run in a browser. Prints the text as it comes, and one JSON line about the turn on stderr.

async function* readEvents(response) {
  let buffer = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    buffer += decoder.decode(bytes, { stream: true });
    const frames = buffer.split("\n\n");
    buffer = frames.pop();
    for (const frame of frames) {
      const data = frame
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).replace(/^ /, ""));
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}

const [url, words] = process.argv.slice(2);
const response = await fetch(url, {
  method: "POST",
  headers: { "content-type": "application/json", accept: "text/event-stream" },
  body: JSON.stringify({
    protocol: "agjson",
    version: "1.0.0-draft.1",
    kind: "start",
    threadId: crypto.randomUUID(),
    turnId: crypto.randomUUID(),
    messages: [{ id: crypto.randomUUID(), role: "user", content: [{ type: "text", text: words }] }],
  }),
});
if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);

let next = 0;
let last;
for await (const event of readEvents(response)) {
  if (event.seq !== next++) throw new Error(`expected event ${next - 1}, got ${event.seq}`);
  if (event.type === "text.delta") process.stdout.write(event.delta);
  last = event;
}
console.error(JSON.stringify({ events: next, last: last?.type, outcome: last?.outcome?.type }));
