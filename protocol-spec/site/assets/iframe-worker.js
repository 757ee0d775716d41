// A browser starts no worker from a page that it reads from a disk. There the search runs in a frame that nobody
// sees, with the same script. The name of the class is what that script looks for.
if (location.protocol === "file:") {
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve))
      window.addEventListener("message", (event) => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      })
      // A worker's postMessage goes to whoever started it; a window's would go to itself.
      this.frame.srcdoc =
        '<!doctype html><script>window.postMessage = (data) => parent.postMessage(data, "*")</' + "script>" +
        '<script src="' + new URL(address, location) + '"></' + "script>"
      document.documentElement.append(this.frame)
    }

    postMessage(data) {
      const target = this.frame.contentWindow
      this.ready.then(() => target.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
