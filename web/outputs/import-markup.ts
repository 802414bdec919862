/**
 * Takes markup that the page's own code has made (KaTeX's MathML, the lab's figures) into the page: it is parsed where nothing runs, and only
 * elements and attributes on a list are copied. Nothing that code of a session has made comes this way unescaped.
 */

const ELEMENTS = new Set(
  (
    'math semantics mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom msub msup msubsup munder mover munderover ' +
    'mtable mtr mtd mlabeledtr mmultiscripts mprescripts none menclose ' +
    'svg g path line rect circle ellipse polyline polygon text tspan title desc defs clippath ' +
    'div section p span b strong i em small code pre h1 h2 h3 h4 ul ol li dl dt dd figure figcaption table caption thead tbody tr th td footer br'
  ).split(' '),
);

const ATTRIBUTES = new Set(
  (
    'class role aria-label aria-hidden scope colspan rowspan ' +
    'x y x1 x2 y1 y2 cx cy r rx ry d points width height viewbox transform text-anchor dominant-baseline fill fill-opacity stroke ' +
    'stroke-width stroke-opacity stroke-dasharray opacity dx dy font-size font-weight preserveaspectratio ' +
    'mathvariant displaystyle scriptlevel stretchy fence separator lspace rspace minsize maxsize accent accentunder linethickness ' +
    'columnalign rowalign columnspacing rowspacing columnlines rowlines symmetric movablelimits display xmlns depth voffset notation'
  ).split(' '),
);

export function importMarkup(markup: string): DocumentFragment {
  const parsed = new DOMParser().parseFromString(markup, 'text/html');
  const fragment = document.createDocumentFragment();
  for (const child of parsed.body.childNodes) copyInto(fragment, child);
  return fragment;
}

function copyInto(parent: Node, node: Node): void {
  if (node instanceof Text) return void parent.appendChild(document.createTextNode(node.data));
  if (!(node instanceof Element)) return;
  if (!ELEMENTS.has(node.localName.toLowerCase())) {
    // KaTeX repeats its source as an annotation, which is not to be seen.
    if (node.localName === 'annotation') return;
    for (const child of node.childNodes) copyInto(parent, child);
    return;
  }
  const copy = document.createElementNS(node.namespaceURI, node.localName);
  for (const { name, value } of node.attributes) {
    if (ATTRIBUTES.has(name.toLowerCase())) copy.setAttribute(name, value);
  }
  for (const child of node.childNodes) copyInto(copy, child);
  parent.appendChild(copy);
}
