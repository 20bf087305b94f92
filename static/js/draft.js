// Keeps what is typed through a reload, a closed tab and an expired session, until it is sent.

export class Draft {
  constructor(name, field) {
    this.key = `draft:${name}`;
    this.field = field;
    if (!field.value) field.value = this.read();
    field.addEventListener("input", () => this.write());
  }

  read() {
    try {
      return localStorage.getItem(this.key) || "";
    } catch {
      return "";
    }
  }

  write() {
    try {
      if (this.field.value) localStorage.setItem(this.key, this.field.value);
      else localStorage.removeItem(this.key);
    } catch {
      // Storage may be full or forbidden; typing goes on.
    }
  }

  clear() {
    this.field.value = "";
    this.write();
  }
}
