import { get, type GetAnswer } from './get.ts';
import { reasonOf } from './reason-of.ts';

/** What the service says about an access token. */
export type AccessVerdict =
  | { kind: 'works' }
  /** `detail` is the service's own word for it, such as `token_expired`. */
  | { kind: 'refused'; detail: string }
  /** No clear answer. `why` is for people, and holds nothing secret. */
  | { kind: 'unknown'; why: string };

/** Never rejects. */
export type CheckAccess = (accessToken: string) => Promise<AccessVerdict>;

export interface AuthCheckOptions {
  baseUrl: string;
  /** Value of `Api-User-Agent`. */
  agent: string;
  /** URL of the proxy to go through, if there is one. */
  proxy: string | undefined;
  timeoutMs?: number;
}

/** Asks `/auth_check` (interface, 4.1). */
export function authCheck({ baseUrl, agent, proxy, timeoutMs }: AuthCheckOptions): CheckAccess {
  const url = new URL(`${baseUrl}/auth_check`);
  return async (accessToken) => {
    const headers = { authorization: `Bearer ${accessToken}`, 'api-user-agent': agent };
    try {
      return judge(await get(url, { headers, proxy, timeoutMs }));
    } catch (error) {
      return { kind: 'unknown', why: reasonOf(error) };
    }
  };
}

function judge({ status, body }: GetAnswer): AccessVerdict {
  if (status === 204 || status === 200) return { kind: 'works' };
  if (status === 401) return { kind: 'refused', detail: detailOf(body) };
  if (status === 403) return { kind: 'refused', detail: 'forbidden' };
  return { kind: 'unknown', why: `status ${status}` };
}

/** A word of the service gets into logs; only one that looks like a code does. */
function detailOf(body: string | undefined): string {
  try {
    const { detail } = JSON.parse(body ?? '') as { detail?: unknown };
    return typeof detail === 'string' && /^[a-z_]{1,40}$/.test(detail) ? detail : 'unknown';
  } catch {
    return 'unknown';
  }
}
