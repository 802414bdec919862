/** Parses the list of hosts that code may reach, and says what it covers. It resolves no names and opens no connections. */

import { BlockList, isIP, isIPv6 } from 'node:net';

interface Entry {
  /** In normal form; empty for every public host. */
  readonly host: string;
  readonly covers: 'host' | 'below' | 'public';
  readonly ports: readonly number[];
}

export type AllowList = readonly Entry[];

const WEB_PORTS = [80, 443];

/** Throws an Error that says what is wrong with an entry. */
export function parseAllowList(texts: string[]): AllowList {
  return texts.map((text) => parseEntry(text.trim()));
}

export function allows(list: AllowList, host: string, port: number): 'yes' | 'no' {
  const name = normalHost(host);
  if (name === undefined) return 'no';
  return list.some((entry) => entry.ports.includes(port) && isCovered(name, entry)) ? 'yes' : 'no';
}

/** Whether an address that is not public may be used all the same: the list has the address itself, not only a name for it. */
export function namesAddress(list: AllowList, address: string, port: number): boolean {
  const literal = normalHost(address);
  return list.some(({ covers, host, ports }) => covers === 'host' && host === literal && ports.includes(port));
}

/** Whether an address is one on the public internet, and so neither this machine's, its network's nor a cloud's own. */
export function isPublicAddress(address: string): boolean {
  const literal = normalHost(address);
  if (literal === undefined) return false;
  if (isIPv6(literal)) return GLOBAL.check(literal, 'ipv6') && !SPECIAL.check(literal, 'ipv6');
  return isIP(literal) !== 0 && !SPECIAL.check(literal, 'ipv4');
}

/** The one way to write a host: lower case, without a last dot, names in ASCII, addresses in their usual notation; undefined for what is no host. */
export function normalHost(text: string): string | undefined {
  // A URL would drop, decode or cut at these; in a host they can only be a trick.
  if (/[\s\p{Cc}%@/\\?#]/u.test(text)) return undefined;
  const written = isIPv6(text) ? `[${text}]` : text;
  if (written.includes(':') && !/^\[.*\]$/.test(written)) return undefined;
  if (!URL.canParse(`http://${written}`)) return undefined;
  const { hostname } = new URL(`http://${written}`);
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  const name = hostname.replace(/\.$/, '');
  const isName = name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
  return isName ? name : undefined;
}

/** Takes `host:port` apart; undefined if it is something else. */
export function splitPort(text: string): { host: string; port: number | undefined } | undefined {
  const [, host, digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (!host) return undefined;
  if (digits === undefined) return { host, port: undefined };
  const port = Number(digits);
  return port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

function parseEntry(text: string): Entry {
  if (text === '') throw new Error('The list of hosts has an empty entry.');
  if (text === 'none' || text === 'allow') throw wrong(text, 'it stands alone, not among hosts');
  if (text.includes('/')) throw wrong(text, 'write the host alone, such as packages.example.org or 10.1.2.3');
  if (isIPv6(text)) throw wrong(text, `write [${text}], or [${text}]:8080 with a port`);
  const split = splitPort(text);
  if (!split) throw wrong(text, 'after the host comes nothing, or a colon and a port from 1 to 65535');
  const ports = split.port === undefined ? WEB_PORTS : [split.port];
  if (split.host === '*') return { host: '', covers: 'public', ports };
  const isBelow = split.host.startsWith('*.');
  const host = normalHost(isBelow ? split.host.slice(2) : split.host);
  if (host === undefined && text.includes('*')) throw wrong(text, 'write * alone, or in front as in *.example.com');
  if (host === undefined) throw wrong(text, 'it is neither a name such as packages.example.org nor an address');
  if (isBelow && isIP(host)) throw wrong(text, 'nothing is below an address');
  return { host, covers: isBelow ? 'below' : 'host', ports };
}

function wrong(text: string, why: string): Error {
  return new Error(`${JSON.stringify(text)} cannot be in the list of hosts: ${why}.`);
}

function isCovered(name: string, { covers, host }: Entry): boolean {
  if (covers === 'host') return name === host;
  if (covers === 'below') return name.endsWith(`.${host}`);
  return isIP(name) === 0 || isPublicAddress(name);
}

/** All of IPv6 that is given out for the internet; mapped, translated, local and multicast addresses are elsewhere. */
const GLOBAL = blockList('2000::/3');

const SPECIAL = blockList(
  '0.0.0.0/8', // this machine
  '10.0.0.0/8', // private
  '100.64.0.0/10', // private to a carrier; metadata at Alibaba
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // metadata at Azure, though the address is public
  '169.254.0.0/16', // link-local; metadata at most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocols; metadata at Oracle
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // relays to IPv6
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/3', // multicast, reserved, broadcast
  '2001::/23', // protocols; Teredo, which holds an IPv4 address
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which holds an IPv4 address
  '3fff::/20', // documentation
);

function blockList(...ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}
