// Marks: times with a note, kept in the address.
import { add, button, clear, h } from "../dom";

export interface Mark {
  at: number; // ns since the first event
  note: string;
}

/** "1200~late all-reduce|88000~" */
export function marksText(list: Mark[]): string {
  return list.map((m) => `${Math.round(m.at)}~${m.note.replace(/[|~]/g, " ")}`).join("|");
}

export function marksOf(text: string): Mark[] {
  return text.split("|").map((t) => t.split("~")).filter(([at]) => /^-?\d+$/.test(at)).map(([at, note]) => ({ at: Number(at), note: note ?? "" }));
}

/** Where the note of a mark is written: a small form above the tracks. */
export class MarkForm {
  readonly place = h("form", { class: "mark", hidden: true });

  constructor(private readonly changed: () => void) {
    this.place.addEventListener("submit", (e) => (e.preventDefault(), this.close()));
  }

  get isOpen(): boolean {
    return !this.place.hidden;
  }

  open(list: Mark[], mark: Mark, x: number): void {
    const note = h("input", { type: "text", size: 22, value: mark.note, placeholder: "Note", "aria-label": "Note of the mark", maxlength: 80 });
    note.addEventListener("input", () => {
      mark.note = note.value;
      this.changed();
    });
    note.addEventListener("keydown", (e) => e.key === "Escape" && this.close());
    clear(this.place);
    add(this.place, note, button("Remove", () => {
      list.splice(list.indexOf(mark), 1);
      this.close();
    }), h("button", { type: "submit" }, "Done"));
    this.place.style.left = `${Math.max(0, x)}px`;
    this.place.hidden = false;
    note.focus();
  }

  close(): void {
    this.place.hidden = true;
    this.changed();
  }
}
