// The program that packages/acceptance runs in empty projects of every kind, from the packed tarball. It sends three requests to a
// limit of 2.
import { throttle } from '@weir/web'

async function main(): Promise<void> {
  const limit = throttle({ key: 'ip', limit: 2, interval: '1h' })
  const handle = limit(() => new Response('hello'))
  const outcomes: string[] = []
  for (let request = 0; request < 3; request++) {
    const { status } = await handle(new Request('http://localhost/'))
    outcomes.push(status === 200 ? 'allowed' : status === 429 ? 'rejected' : String(status))
  }
  console.log(outcomes.join(' '))
}

void main()
