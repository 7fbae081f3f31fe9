// Shows the program's state, asked every two seconds; texts are set as text, never as HTML.
"use strict";

const sentence = document.getElementById("sentence");
const parts = document.getElementById("parts");

function row(part) {
  const line = document.createElement("tr");
  line.className = part.works ? "works" : "broken";
  for (const words of [part.part, part.works ? part.what : `Does not work: ${part.what}`]) {
    const cell = document.createElement("td");
    cell.textContent = words;
    line.append(cell);
  }
  return line;
}

async function ask() {
  try {
    const answer = await fetch("/api/state", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const state = await answer.json();
    sentence.textContent = state.sentence;
    // What does not work comes first.
    const sorted = [...state.parts].sort((one, other) => Number(one.works) - Number(other.works));
    parts.tBodies[0].replaceChildren(...sorted.map(row));
    parts.hidden = sorted.length === 0;
  } catch {
    sentence.textContent = "The app does not answer; it may be starting or have been stopped.";
    parts.hidden = true;
  }
  setTimeout(ask, 2000);
}

ask();
