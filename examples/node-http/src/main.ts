import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore } from '@weir/core'
import { WebSocketServer } from 'ws'
import { throttle } from './throttle.ts'

const limit = throttle({ key: 'ip', limit: 3, interval: '10s', store: memoryStore() })

const sockets = new WebSocketServer({ noServer: true })
sockets.on('connection', (socket) => socket.send('Hello from a WebSocket'))

const server = createServer(limit.requests((_request, response) => void response.end('Hello from Node.js\n')))
server.on(
  'upgrade',
  limit.upgrades((request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client, request))
  }),
)
server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`Try: curl -i http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
