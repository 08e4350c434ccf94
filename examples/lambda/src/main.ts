import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda'

/*
 * Replaces Lambda on your machine: it passes HTTP requests to the handler as a function URL does, one after the other. `exact` as an
 * argument starts the other handler.
 */

type Handler = (event: APIGatewayProxyEventV2) => Promise<APIGatewayProxyStructuredResultV2>

const { handler } = (await (process.argv[2] === 'exact' ? import('./exact.ts') : import('./app.ts'))) as unknown as { handler: Handler }

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const body = await text(request)
  const event = {
    version: '2.0',
    rawPath: url.pathname,
    rawQueryString: url.search.slice(1),
    headers: request.headers,
    requestContext: {
      domainName: url.host,
      http: { method: request.method, path: url.pathname, protocol: 'HTTP/1.1', sourceIp: request.socket.remoteAddress },
    },
    isBase64Encoded: false,
    ...(body !== '' && { body }),
  }
  const result = await handler(event as unknown as APIGatewayProxyEventV2)
  const sent = result.isBase64Encoded ? Buffer.from(result.body ?? '', 'base64') : (result.body ?? '')
  response.writeHead(result.statusCode ?? 200, result.headers as Record<string, string>).end(sent)
})

server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`Try: curl -i http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
