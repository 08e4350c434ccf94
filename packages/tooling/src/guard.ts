import { type ChildProcess, spawn } from 'node:child_process'

/**
 * Ends a server and its child processes even if this process is killed and its `exit` handlers do not run. A shell waits for the end of its
 * standard input, which closes when this process ends for any reason.
 */
export function guard(server: ChildProcess, directory: string): void {
  if (server.pid === undefined) return
  const end = 'read _; kill -9 $(pgrep -P "$1" 2>/dev/null) "$1"; rm -rf "$2"'
  const shell = spawn('sh', ['-c', end, 'guard', String(server.pid), directory], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Ctrl-C ends the whole process group, but the guard must run after it.
    detached: true,
  })
  shell.on('error', () => {})
  shell.unref()
  const input = shell.stdin as (typeof shell.stdin & { unref?(): void }) | null
  input?.on('error', () => {})
  input?.unref?.()
  server.once('exit', () => shell.kill('SIGKILL'))
}
