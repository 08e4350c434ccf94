import { once } from 'node:events'
import { connect } from 'node:net'
import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve, storeOf } from '../harness/serve.ts'
import { parseReply, requestText } from '../harness/wire.ts'

const LIMIT = 10
const SENT = 200

/** Sends many requests in one packet, in small pieces, and on many connections at once. Each needs a response, and the limit must apply. */
export const pipelining = attack<null>({
  name: 'pipelining',
  targets: ADAPTERS,
  stores: ['none', 'redis'],
  short: { stores: ['none'] },

  async victim(given) {
    const { header } = await import('@weir/core/http')
    return serve(given.target as never, { options: { key: header('x-how'), limit: LIMIT, interval: '1h', ...(await storeOf(given)) } })
  },

  async run({ start, result, random }) {
    const victim = await start(null)
    for (const how of ['one packet', 'crumbs', 'connections'] as const) {
      const text = Buffer.from(requestText('GET', '/', { 'x-how': how }).repeat(how === 'connections' ? 1 : SENT))
      const packets: Buffer[] = []
      if (how === 'crumbs') for (let at = 0; at < text.length; ) packets.push(text.subarray(at, (at += 1 + random.below(400))))
      else packets.push(text)
      const wires = how === 'connections' ? SENT : 1
      const lists = await Promise.all(Array.from({ length: wires }, () => talk(victim.port, packets, SENT / wires)))
      const statuses = lists.flat()
      const allowed = statuses.filter((status) => status === 200).length
      const held = allowed <= LIMIT && statuses.length === SENT && statuses.every((status) => status === 200 || status === 429)
      result(`${SENT} requests, ${how}`, held, `${allowed} of limit ${LIMIT}, ${statuses.length} answers`)
    }
  },
})

async function talk(port: number, packets: readonly Buffer[], answers: number): Promise<number[]> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const statuses: number[] = []
  let buffer = Buffer.alloc(0)
  const done = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, 10_000)
    const end = (): void => {
      clearTimeout(timer)
      resolve()
    }
    socket.on('error', end)
    socket.on('close', end)
    socket.on('data', (data) => {
      buffer = Buffer.concat([buffer, data])
      for (let parsed = parseReply(buffer); parsed !== undefined; parsed = parseReply(buffer)) {
        statuses.push(parsed.reply.status)
        buffer = buffer.subarray(parsed.length)
      }
      if (statuses.length >= answers) end()
    })
  })
  for (const packet of packets) {
    socket.write(packet)
    if (packets.length > 1) await new Promise((resolve) => setImmediate(resolve))
  }
  await done
  socket.destroy()
  return statuses
}
