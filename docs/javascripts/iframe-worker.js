// Browsers refuse workers to pages that were opened from disk. There the search's worker runs in a hidden frame of the page instead: it
// finds the two functions of a worker that it needs, and messages are handed over as events. Its name tells Material that it is there.
"use strict";
if (location.protocol === "file:") {
  const load = (page, url) => new Promise((resolve, reject) => {
    const script = page.createElement("script");
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${url} cannot be loaded`));
    script.src = url;
    page.body.append(script);
  });

  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><title>search</title><body></body>");
      inside.document.close();
      inside.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      inside.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(inside.document, one)), Promise.resolve());
      this.ready = load(inside.document, url);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
