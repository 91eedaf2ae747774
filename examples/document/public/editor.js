// The page of a document: sends what is typed, one edit at a time, and puts in what others type.

const name = location.pathname.slice(1) || 'notes';
const area = document.getElementById('text');
const state = document.getElementById('state');
document.getElementById('name').textContent = name;

let shared; // the document as all have it, and its revision
let revision = 0;
let sent = null; // the edit that is under way
let socket;

/** What makes `to` out of `from`, between their common beginning and end. */
function difference(from, to) {
  let at = 0;
  while (at < from.length && at < to.length && from[at] === to[at]) at++;
  let tail = 0;
  while (tail < from.length - at && tail < to.length - at && from.at(-1 - tail) === to.at(-1 - tail)) tail++;
  return { at, remove: from.length - at - tail, insert: to.slice(at, to.length - tail) };
}

const apply = (text, { at, remove, insert }) => text.slice(0, at) + insert + text.slice(at + remove);

/** Sends what was typed since, unless an edit is under way. */
function send() {
  if (sent !== null || shared === undefined || area.value === shared || socket.readyState !== WebSocket.OPEN) return;
  sent = difference(shared, area.value);
  socket.send(JSON.stringify({ base: revision, ...sent }));
}

/** Puts somebody else's edit into the text that is typed in, with the cursor where it was. */
function show(edit) {
  const own = difference(shared, area.value);
  const { selectionStart: start, selectionEnd: end } = area;
  const shift = edit.insert.length - edit.remove;
  const moved = edit.at + edit.remove <= own.at ? own.at + shift : own.at;
  area.value = apply(apply(shared, edit), { ...own, at: moved });
  const place = (at) => (edit.at < at ? Math.max(edit.at, at + shift) : at);
  area.setSelectionRange(place(start), place(end));
}

function hear(said) {
  if (said.type === 'document') {
    shared = said.text;
    revision = said.revision;
    sent = null;
    area.value = shared;
    area.disabled = false;
    return;
  }
  if (!said.isYours) show(said.edit);
  shared = apply(shared, said.edit);
  revision = said.revision;
  if (said.isYours) sent = null;
  send();
}

function connect() {
  socket = new WebSocket(`${location.origin.replace('http', 'ws')}/api/${name}`);
  socket.onopen = () => { state.textContent = 'what you type is stored before anybody sees it'; };
  socket.onmessage = ({ data }) => { if (data !== 'pong') hear(JSON.parse(data)); };
  socket.onclose = () => {
    state.textContent = 'connecting again…';
    area.disabled = true;
    setTimeout(connect, 500);
  };
}

area.addEventListener('input', send);
setInterval(() => { if (socket.readyState === WebSocket.OPEN) socket.send('ping'); }, 30_000);
connect();
