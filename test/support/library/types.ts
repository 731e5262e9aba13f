import process from 'node:process';
import {
  createExecutor,
  createGateway,
  defineConfig,
  type Gateway,
  type GatewayConfig,
} from 'recruiting-subgraph';

// Only its types are checked.
export const config: GatewayConfig = defineConfig({
  plugins: [{ onExecute: () => ({ onExecuteDone: ({ result }) => console.log(result) }) }, false],
  typeDefs: 'extend type Person { initial: String }',
});

export async function open(): Promise<Gateway> {
  // @ts-expect-error -- there is no such setting
  await createExecutor({ settings: { RECRUTING_URL: 'https://api.example.com' } });
  const settings = { ...process.env, ALLOW_ANONYMOUS: true, MAX_DRAINS: 8 };
  return await createGateway({ settings, config });
}
