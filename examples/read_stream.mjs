// Reads an AgJSON stream with nothing but the platform: node examples/read_stream.mjs URL "What is up?"
// Prints the text as it comes, and one JSON line about the turn on stderr. A browser imports readEvents from here.

export async function* readEvents(response) {
  const decoder = new TextDecoder(); // a character may be cut between two chunks
  const reader = response.body.getReader();
  let [buffer, data, id, afterCR] = ["", [], "", false];
  try {
    for (let chunk; !(chunk = await reader.read()).done; ) {
      const text = decoder.decode(chunk.value, { stream: true });
      const lines = (buffer + (afterCR ? text.replace(/^\n/, "") : text)).split(/\r\n|\r|\n/);
      buffer = lines.pop(); // the rest of this line is yet to come
      if (text) afterCR = text.endsWith("\r"); // and perhaps the LF of this CR
      for (const line of lines) {
        const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line); // a comment is a line without a field name
        if (field === "data") data.push(value);
        else if (field === "id") id = value;
        else if (line === "" && data.length) yield { id, event: JSON.parse(data.splice(0).join("\n")) };
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // whoever leaves early closes the connection
  }
}

export async function start(url, text, threadId = crypto.randomUUID()) {
  const messages = [{ id: crypto.randomUUID(), role: "user", content: [{ type: "text", text }] }];
  const ids = { threadId, turnId: crypto.randomUUID() };
  const input = { protocol: "agjson", version: "1.0.0-draft.1", kind: "start", ...ids, messages };
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(input) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response;
}

const [url, words] = globalThis.process?.argv.slice(2) ?? []; // a browser has no process
if (url) {
  let [next, last, place] = [0];
  for await (const { id, event } of readEvents(await start(url, words ?? "Hello"))) {
    if (event.seq !== next++) throw new Error(`expected event ${next - 1}, got ${event.seq}`);
    if (event.type === "text.delta") process.stdout.write(event.delta);
    [last, place] = [event, id];
  }
  console.error(JSON.stringify({ events: next, last: last?.type, outcome: last?.outcome?.type, id: place }));
}
