// The program that packages/acceptance runs in empty projects of every kind, from the packed tarball. It sends three requests to a
// limit of 2.
import weir from '@weir/fastify'
import Fastify from 'fastify'

declare module '@weir/fastify' {
  interface WeirTypes {
    policy: 'everyone' | 'user'
  }
}

async function main(): Promise<void> {
  const app = Fastify()
  await app.register(weir, { name: 'user', key: 'ip', limit: 2, interval: '1h' })
  app.get('/', async (request) => {
    const policy: 'everyone' | 'user' | undefined = request.throttle?.policy?.name
    return policy
  })
  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  const outcomes: string[] = []
  for (let request = 0; request < 3; request++) {
    const { status } = await fetch(address)
    outcomes.push(status === 200 ? 'allowed' : status === 429 ? 'rejected' : String(status))
  }
  console.log(outcomes.join(' '))
  await app.close()
}

void main()
