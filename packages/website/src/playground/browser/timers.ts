/** `setImmediate` of Node.js: after all promises that are settled, and without the pause of a timer. */
const channel = new MessageChannel()
const waiting: (() => void)[] = []
channel.port1.onmessage = () => waiting.shift()?.()

export function setImmediate(callback: () => void): void {
  waiting.push(callback)
  channel.port2.postMessage(undefined)
}
