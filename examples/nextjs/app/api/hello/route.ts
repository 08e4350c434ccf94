export function GET(): Response {
  return new Response('Hello from Next.js\n')
}
