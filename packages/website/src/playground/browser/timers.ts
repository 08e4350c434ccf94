/** Node's `setImmediate`: runs after all settled promises, and without the delay of a timer. */
const channel = new MessageChannel()
const waiting: (() => void)[] = []
channel.port1.onmessage = () => waiting.shift()?.()

export function setImmediate(callback: () => void): void {
  waiting.push(callback)
  channel.port2.postMessage(undefined)
}
