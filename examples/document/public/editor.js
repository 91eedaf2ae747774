// The page of a document: sends what is typed, one edit at a time, and puts in what others type.

import { apply, difference, over } from './edit.js';

const name = location.pathname.slice(1) || 'notes';
const area = document.getElementById('text');
const state = document.getElementById('state');
document.getElementById('name').textContent = name;

let shared; // the document as all have it, and its revision
let revision = 0;
let sent = null; // the edit that is under way, as it is after what was heard since
let socket;

/** Sends what was typed since, unless an edit is under way. */
function send() {
  if (sent !== null || shared === undefined || area.value === shared || socket.readyState !== WebSocket.OPEN) return;
  sent = difference(shared, area.value);
  socket.send(JSON.stringify({ base: revision, ...sent }));
}

/** The document with the edit that is under way: what is typed after it is the rest. */
const withSent = () => (sent === null ? shared : apply(shared, sent));

/** Puts somebody else's edit under what was typed here, with the cursor where it was. */
function show(edit) {
  const before = withSent();
  const rest = difference(before, area.value);
  shared = apply(shared, edit);
  if (sent !== null) sent = over(sent, edit);
  const after = withSent();
  const came = difference(before, after);
  const { selectionStart: start, selectionEnd: end } = area;
  const place = (at) => over({ at, remove: 0, insert: '' }, came).at;
  area.value = apply(after, over(rest, came));
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
  revision = said.revision;
  if (said.isYours) {
    shared = apply(shared, said.edit);
    sent = null;
  } else {
    show(said.edit);
  }
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
