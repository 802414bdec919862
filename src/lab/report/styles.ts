/** Defines the CSS of reports: colours that the colour-blind can tell apart, in light and dark, on screen and in print. */

const LIGHT = `--ink:#1b1f24;--soft:#5b6572;--faint:#d5dae1;--paper:#ffffff;--tint:#f4f6f8;--positive:#0072b2;--negative:#d55e00;
--null:#a9b2bd;--accent:#0072b2;--good:#1a7f4b;--bad:#b3372c;--mixed:#9a6700;`;

const DARK = `--ink:#e4e8ee;--soft:#9aa5b3;--faint:#39414c;--paper:#14181d;--tint:#1c2229;--positive:#58b4e5;--negative:#f2924a;
--null:#5d6875;--accent:#58b4e5;--good:#4fc98a;--bad:#f07f74;--mixed:#e0b04c;`;

const COLOURS = `:root{color-scheme:light dark;${LIGHT}}
@media (prefers-color-scheme:dark){:root{${DARK}}}
@media print{:root{color-scheme:light;${LIGHT}}}`;

/** Without the colours, for a page that has its own under the same names. */
export const FIGURE_RULES = `svg{font-family:"Helvetica Neue",Helvetica,Arial,"Liberation Sans",sans-serif;font-size:11px;font-variant-numeric:tabular-nums}
svg text{fill:var(--ink)}
svg .title{font-weight:600;font-size:11.5px}
svg .result,svg .label,svg .tick{fill:var(--soft)}
svg .tick{font-size:10px}
svg .label{font-size:10.5px}
svg .heading{font-weight:600;font-size:13px}
svg .axis{stroke:var(--soft);stroke-width:1}
svg .grid{stroke:var(--faint);stroke-width:.7}
svg .reference{stroke:var(--soft);stroke-width:.8;stroke-dasharray:1.5 3}
svg .threshold{stroke:var(--bad);stroke-width:1;stroke-dasharray:4 3}
svg .positive{fill:var(--positive)}
svg .negative{fill:var(--negative)}
svg text.positive-text,svg text.negative-text{paint-order:stroke;stroke:var(--paper);stroke-width:3px}
svg text.positive-text{fill:var(--positive)}
svg text.negative-text{fill:var(--negative)}
svg .null{fill:var(--null)}
svg .null-outline{fill:none;stroke:var(--soft);stroke-width:.8}
svg .each{stroke:var(--accent);stroke-opacity:.45;stroke-width:1}
svg .band{fill:var(--accent);fill-opacity:.16}
svg .observed{stroke:var(--accent);stroke-width:2}
svg .whisker{stroke:var(--accent);stroke-width:1.6}
svg .dot{fill:var(--accent)}
svg .hollow{fill:var(--paper);stroke:var(--accent);stroke-width:1.6}
svg .curve{fill:none;stroke-width:1.8}
svg .direction-line{stroke:var(--accent)}
svg .direction-dot{fill:var(--accent)}
svg .toward-line{stroke:var(--accent);stroke-dasharray:3 3;stroke-width:1.4}
svg .toward-dot{fill:var(--paper);stroke:var(--accent);stroke-width:1.4}
svg .random-line{stroke:var(--null)}
svg .random-dot{fill:var(--null)}
svg text.good{fill:var(--good)}
svg text.bad{fill:var(--bad)}
svg text.mixed{fill:var(--mixed)}`;

export const FIGURE_STYLE = `${COLOURS}
${FIGURE_RULES}`;

export const PAGE_STYLE = `
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 Charter,"Bitstream Charter","Source Serif 4",Cambria,Georgia,"Liberation Serif",serif}
main{max-width:800px;margin:0 auto;padding:40px 20px 72px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .3em;text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.2em 0 .5em;padding-top:.7em;border-top:1px solid var(--faint)}
p{margin:.6em 0}
.lead{color:var(--soft);margin:0 0 1.4em}
.verdict{border:1px solid var(--faint);border-left:5px solid var(--soft);background:var(--tint);padding:14px 18px;border-radius:4px;margin:1.2em 0}
.verdict.good{border-left-color:var(--good)}
.verdict.bad{border-left-color:var(--bad)}
.verdict.mixed{border-left-color:var(--mixed)}
.verdict strong{font-size:1.2rem}
.verdict{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1em}
.verdict p{flex-basis:100%}
.verdict code{color:var(--soft);align-self:center}
figure{margin:1.4em 0;break-inside:avoid}
figure svg{width:100%;height:auto;display:block}
.panels{display:flex;flex-wrap:wrap;gap:14px}
.panels>div{flex-basis:0;min-width:0}
.share-1{flex-grow:1}
.share-4{flex-grow:4}
.share-5{flex-grow:5}
figcaption{font-size:.88rem;color:var(--soft);margin-top:.5em}
figcaption b{color:var(--ink)}
.scroll{overflow-x:auto}
figure .map svg{width:auto;max-width:100%}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid var(--faint);vertical-align:top}
thead th{border-bottom:1.5px solid var(--soft);font-weight:600}
tbody th{font-weight:400;color:var(--soft)}
table.pairs tbody th{width:44%}
table:not(.pairs,.guards) td{white-space:nowrap}
td:first-child{white-space:normal}
caption{text-align:left;font-weight:600;padding:.9em 0 .3em}
code{font:.85em ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;overflow-wrap:anywhere}
ol.path{list-style:none;padding:0;margin:.8em 0}
ol.path li{padding:7px 0 7px 30px;border-bottom:1px solid var(--faint);position:relative;font-size:.93rem;break-inside:avoid}
ol.path li::before{content:"–";position:absolute;left:8px;color:var(--soft)}
ol.path li.matched{background:var(--tint);font-weight:600}
ol.path li.matched::before{content:"➜";color:var(--accent)}
ol.path span{display:block;color:var(--soft);font-weight:400}
.good-text{color:var(--good)}
.bad-text{color:var(--bad)}
ul.examples{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:12px}
ul.examples li{border:1px solid var(--faint);border-radius:4px;padding:8px 12px;font-size:.93rem;break-inside:avoid;overflow-wrap:anywhere}
ul.examples p{margin:0 0 .4em}
ul.examples small{color:var(--soft)}
ul.examples dl{display:grid;grid-template-columns:auto 1fr;gap:0 .8em;margin:0}
ul.examples dt{color:var(--soft)}
ul.examples dd{margin:0}
footer{margin-top:3em;padding-top:.8em;border-top:1px solid var(--faint);font-size:.85rem;color:var(--soft)}
a{color:var(--accent)}
@media (max-width:560px){main{padding:20px 14px 48px}h1{font-size:1.4rem}.verdict{padding:10px 12px}th,td{padding:5px 8px 5px 0}
table.pairs,table.pairs tbody,table.pairs tr,table.pairs th,table.pairs td{display:block;width:auto}table.pairs tbody th{width:auto;border-bottom:0;padding-bottom:0}table.pairs td{white-space:normal;overflow-wrap:anywhere}
.panels>div{flex-basis:100%}
table.guards thead{display:none}table.guards,table.guards tbody,table.guards tr,table.guards td{display:block;white-space:normal}table.guards td{border:0;padding:0 0 2px}table.guards tr{border-bottom:1px solid var(--faint);padding:8px 0}table.guards td:first-child{font-weight:600}table.guards td:nth-child(3)::before{content:"limit: "}table.guards td:nth-child(3){color:var(--soft)}}
@media print{main{max-width:none;padding:0}body{font-size:10.5pt}h2{break-after:avoid}a{color:inherit}}`;
