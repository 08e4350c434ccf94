import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { createGzip } from 'node:zlib'
import { zipf } from '../harness/random.ts'

/** The format of the lines of a log. */
export type LogForm = 'combined' | 'json' | 'gzip'

/** Requests a second. */
const RATE = 200
const CLIENTS = 20_000
const START = Date.UTC(2026, 2, 7, 12)
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'

/** Writes the access log of a server with 200 requests a second of 20,000 clients, some of which send much more than others. */
export async function writeLog(file: string, form: LogForm, lines: number): Promise<void> {
  const clients = zipf(CLIENTS, 1.1, 1 << 20)
  const out = createWriteStream(file)
  const into = form === 'gzip' ? createGzip({ level: 1 }) : out
  if (into !== out) into.pipe(out)
  const done = once(out, 'close')
  let line = 0
  for (let second = 0; line < lines; second++) {
    const time = timeOf(second, form)
    let text = ''
    for (let i = 0; i < RATE && line < lines; i++, line++) {
      const client = clients[line % clients.length] as number
      const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
      const target = `/api/items/${(line * 7919) % 10_000}?page=${line % 20}`
      text +=
        form === 'json'
          ? `{"time_iso8601":"${time}","remote_addr":"${address}","request_method":"GET","request_uri":"${target}","status":200,"request_time":0.012,"http_user_agent":"${AGENT}"}\n`
          : `${address} - - [${time}] "GET ${target} HTTP/1.1" 200 5120 "https://shop.example/" "${AGENT}"\n`
    }
    if (!into.write(text)) await once(into, 'drain')
  }
  into.end()
  await done
}

function timeOf(second: number, form: LogForm): string {
  const iso = new Date(START + second * 1_000).toISOString()
  if (form === 'json') return iso.replace('.000Z', '+00:00')
  return `${iso.slice(8, 10)}/${MONTHS[Number(iso.slice(5, 7)) - 1]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`
}
