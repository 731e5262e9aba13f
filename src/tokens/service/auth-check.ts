import { agentHeaders } from '../../service/request.ts';
import { get, reasonOf, type GetAnswer } from './connection.ts';

/** The result of `/auth_check` for an access token. */
export type AccessVerdict =
  | { kind: 'works' }
  /** `detail` is the service's code, such as `token_expired`. */
  | { kind: 'refused'; detail: string }
  /** No clear answer. `why` is for the operator, and contains no secrets. */
  | { kind: 'unknown'; why: string };

/** Never rejects. */
export type CheckAccess = (accessToken: string) => Promise<AccessVerdict>;

interface AuthCheckOptions {
  baseUrl: string;
  /** Value of `User-Agent` and `Api-User-Agent`. */
  agent: string;
  /** URL of the proxy to go through, if there is one. */
  proxy: string | undefined;
  timeoutMs?: number;
}

/** Calls `/auth_check` (interface, 4.1). */
export function authCheck({ baseUrl, agent, proxy, timeoutMs }: AuthCheckOptions): CheckAccess {
  const url = new URL(`${baseUrl}/auth_check`);
  return async (accessToken) => {
    const headers = { authorization: `Bearer ${accessToken}`, ...agentHeaders(agent) };
    try {
      return judge(await get(url, { headers, proxy, timeoutMs }));
    } catch (error) {
      return { kind: 'unknown', why: reasonOf(error) };
    }
  };
}

/**
 * Success is a 204 (interface, 4.1). A 200 counts too, unless it is the page of a proxy or firewall. The meaning of a
 * 403 is not documented, and firewalls answer with it as well: only a 403 in the service's format (2.2) is about the
 * token.
 */
function judge({ status, body, isPage }: GetAnswer): AccessVerdict {
  if (status === 204) return { kind: 'works' };
  if (status === 200) {
    return isPage || body === undefined
      ? { kind: 'unknown', why: 'status 200 with a page' }
      : { kind: 'works' };
  }
  const { type, detail } = tokenErrorIn(body);
  if (status === 401 || (status === 403 && type !== undefined)) {
    return { kind: 'refused', detail: detail ?? 'unknown' };
  }
  const why = `status ${status}${status === 403 ? ' that is not from the service' : ''}`;
  return { kind: 'unknown', why };
}

/** `detail` is logged, so only a text that looks like a code is taken. */
function tokenErrorIn(body: string | undefined): { type?: string; detail?: string } {
  try {
    const { type, detail } = JSON.parse(body ?? '') as { type?: unknown; detail?: unknown };
    const isCode = typeof detail === 'string' && /^[a-z_]{1,40}$/.test(detail);
    return { ...(typeof type === 'string' && { type }), ...(isCode && { detail }) };
  } catch {
    return {};
  }
}
