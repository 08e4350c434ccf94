import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parentChannel } from './channel.ts'

/** Whether the parent of this process is PM2. The children of such a process have PM2's variables too, but another parent. */
export function startedByPm2(): boolean {
  // Checked first, because reading a variable needs a permission in Deno.
  if (!parentChannel.open) return false
  const { pm_id: id, PM2_HOME: home } = process.env
  if (id === undefined || home === undefined) return false
  try {
    return Number(readFileSync(join(home, 'pm2.pid'), 'utf8')) === process.ppid
  } catch {
    return false
  }
}
