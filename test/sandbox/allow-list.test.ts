import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allows, isPublicAddress, namesAddress, normalHost, parseAllowList } from '../../src/sandbox/allow-list.ts';

const asked = (entries: string, host: string, port = 443) => allows(parseAllowList(entries.split(' ')), host, port);

describe('an entry of the allow-list', () => {
  it.each([
    ['packages.example.org', 'packages.example.org'],
    ['packages.example.org', 'Packages.Example.ORG.'],
    ['Packages.Example.org.', 'packages.example.org'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'BÜCHER.example'],
    ['*.example.com', 'a.example.com'],
    ['*.example.com', 'a.b.example.com'],
    ['example.com a.test', 'a.test'],
    ['8.8.8.8', '8.8.8.8'],
    ['10.1.2.3', '10.1.2.3'],
    ['10.1.2.3', '0x0a.0x01.515'],
    ['[::1]', '::1'],
    ['[2606:4700::0:1]', '[2606:4700::1]'],
    ['*', 'anything.example'],
    ['*', '8.8.8.8'],
    ['*', '2606:4700::1'],
  ])('%s allows %s', (entries, host) => expect(asked(entries, host)).toBe('yes'));

  it.each([
    ['packages.example.org', 'files.packages.example.org'],
    ['packages.example.org', 'notpackages.example.org'],
    ['packages.example.org', 'packages.example.org.evil.example'],
    ['*.example.com', 'example.com'],
    ['*.example.com', '.example.com'],
    ['*.example.com', 'evilexample.com'],
    ['*.example.com', 'a.example.com.evil.example'],
    ['10.1.2.3', '10.1.2.30'],
    ['10.1.2.3', '::ffff:10.1.2.3'],
    ['*', '127.0.0.1'],
    ['*', '[::1]'],
    ['*', '[::ffff:8.8.8.8]'],
  ])('%s does not allow %s', (entries, host) => expect(asked(entries, host)).toBe('no'));

  it('allows the ports of the web, or the one that it names', () => {
    for (const [entry, port, answer] of [
      ['example.com', 80, 'yes'],
      ['example.com', 443, 'yes'],
      ['example.com', 22, 'no'],
      ['example.com:8443', 8443, 'yes'],
      ['example.com:8443', 443, 'no'],
      ['*.example.com:1', 1, 'no'],
      ['*:8443', 8443, 'yes'],
      ['*:8443', 443, 'no'],
    ] as const) {
      expect([entry, port, asked(entry, 'example.com', port)]).toEqual([entry, port, answer]);
    }
    expect(asked('[::1]:8080', '::1', 8080)).toBe('yes');
    expect(asked('[::1]:8080', '::1', 80)).toBe('no');
  });

  it('is taken without the spaces around it', () =>
    expect(asked('packages.example.org', 'packages.example.org')).toBe(
      allows(parseAllowList([' packages.example.org ']), 'packages.example.org', 443),
    ));

  it.each([
    ['', 'empty entry'],
    ['https://packages.example.org', 'write the host alone'],
    ['packages.example.org/simple', 'write the host alone'],
    ['10.0.0.0/8', 'write the host alone'],
    ['none', 'stands alone'],
    ['allow', 'stands alone'],
    ['::1', 'write [::1]'],
    ['packages.example.org:0', 'port from 1 to 65535'],
    ['packages.example.org:65536', 'port from 1 to 65535'],
    ['packages.example.org:', 'port from 1 to 65535'],
    ['packages.example.org:https', 'port from 1 to 65535'],
    [':443', 'port from 1 to 65535'],
    ['*.10.1.2.3', 'below an address'],
    ['*.*.example.com', 'write * alone'],
    ['a*.example.com', 'write * alone'],
    ['*example.com', 'write * alone'],
    ['user@packages.example.org', 'neither a name'],
    ['packages.example.org packages.example.org', 'neither a name'],
    ['packages%2eexample.org', 'neither a name'],
    ['a..b', 'neither a name'],
    ['[fe80::1%eth0]', 'neither a name'],
    ['1.2.3.4.5', 'neither a name'],
  ])('%j is refused', (entry, why) => {
    expect(() => parseAllowList(['packages.example.org', entry])).toThrow(why);
    if (entry) expect(() => parseAllowList([entry])).toThrow(JSON.stringify(entry));
  });
});

describe('an allow-list', () => {
  it('that is empty allows nothing', () => expect(allows(parseAllowList([]), 'packages.example.org', 443)).toBe('no'));

  it.each([
    'packages.example.org@evil.example',
    'evil.example@packages.example.org',
    'packages.example.org:443',
    'packages.example.org:443@evil.example',
    'packages.example.org/',
    'packages.example.org\\.evil.example',
    'packages.example.org#.evil.example',
    'packages.example.org?.evil.example',
    'packages%2eexample.org',
    'packages.example.org%00.evil.example',
    'packages.example.org\0',
    'packages.example.org\n',
    ' packages.example.org',
    'packages.example.org..',
    'packages..example.org',
    '',
    '.',
    '*',
    '[packages.example.org]',
    '[::1',
    `${'a'.repeat(64)}.org`,
    `${'a.'.repeat(130)}org`,
  ])('does not take %j for a host', (host) => {
    expect(normalHost(host)).toBeUndefined();
    expect(asked('packages.example.org *', host)).toBe('no');
  });

  it('knows an address however it is written', () => {
    for (const text of ['127.1', '0x7f.1', '0177.0.0.1', '2130706433', '0x7f000001', '127.0.0.1.', '１２７.0.0.1']) {
      expect(normalHost(text)).toBe('127.0.0.1');
      expect(asked('*', text)).toBe('no');
    }
    const octet = fc.integer({ min: 0, max: 255 });
    const written = (number: number, base: number) =>
      base === 16 ? `0x${number.toString(16)}` : base === 8 ? `0${number.toString(8)}` : String(number);
    const base = fc.constantFrom(8, 10, 16);
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), fc.tuple(base, base, base, base), ([a, b, c, d], bases) => {
        const address = [a, b, c, d].join('.');
        const rest = (b << 16) | (c << 8) | d;
        expect(normalHost([a, b, c, d].map((number, index) => written(number, bases[index] ?? 10)).join('.'))).toBe(
          address,
        );
        expect(normalHost([written(a, bases[0]), written(rest, bases[1])].join('.'))).toBe(address);
        expect(normalHost(written(a * 2 ** 24 + rest, bases[2]))).toBe(address);
      }),
    );
  });
});

describe('a public address, to the allow-list,', () => {
  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.0.1',
    '172.32.0.1',
    '192.0.1.1',
    '223.255.255.255',
    '2606:4700::1111',
    '2001:4860:4860::8888',
    '2a00::1',
  ])('%s is one', (address) => expect(isPublicAddress(address)).toBe(true));

  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.255.254',
    '168.63.129.16',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.168.1.1',
    '198.19.0.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::7f00:1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::127.0.0.1',
    '64:ff9b:1::10.0.0.1',
    '100::1',
    '2001::7f00:1',
    '2001:db8::1',
    '2002:7f00:1::',
    '3fff::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    'example.com',
    '',
  ])('%s is none', (address) => expect(isPublicAddress(address)).toBe(false));
});

describe('an address that is not public, to the allow-list,', () => {
  const list = parseAllowList(['10.1.2.3', '10.1.2.4:5432', '[fd00::1]', '*', '*.example.com', 'intern.example']);

  it('may be used if the list has it, with that port', () => {
    expect(namesAddress(list, '10.1.2.3', 443)).toBe(true);
    expect(namesAddress(list, '10.1.2.4', 5432)).toBe(true);
    expect(namesAddress(list, 'FD00:0::1', 80)).toBe(true);
  });

  it('may not be used for anything else in the list', () => {
    expect(namesAddress(list, '10.1.2.3', 5432)).toBe(false);
    expect(namesAddress(list, '10.1.2.4', 443)).toBe(false);
    expect(namesAddress(list, '10.1.2.5', 443)).toBe(false);
    expect(namesAddress(list, '::ffff:10.1.2.3', 443)).toBe(false);
    expect(namesAddress(list, '', 443)).toBe(false);
  });
});
