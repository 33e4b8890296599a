// Character references of Markdown by name, such as `&amp;`. It takes the place of the parser's own decoder for browsers,
// which writes HTML into an element: the policy of the page refuses that, and the text would not be shown at all. The names
// are those of HTML 4 and of ASCII punctuation; other references stay as they were written. Pure.

/** Names of consecutive characters, by the code of the first. */
const RUNS: readonly (readonly [first: number, names: string])[] = [
  [
    160,
    'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml',
  ],
  [0x391, 'Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho'],
  [0x3a3, 'Sigma Tau Upsilon Phi Chi Psi Omega'],
  [
    0x3b1,
    'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega',
  ],
  [0x2190, 'larr uarr rarr darr harr'],
  [0x200c, 'zwnj zwj lrm rlm'],
];
/** Each character with its names. */
const OTHERS =
  '& amp AMP|< lt LT|> gt GT|" quot QUOT|\' apos|! excl|# num|$ dollar|% percnt|( lpar|) rpar|* ast|+ plus|, comma|. period|/ sol|: colon|; semi|= equals|? quest|@ commat|[ lsqb lbrack|\\ bsol|] rsqb rbrack|^ Hat|_ lowbar|` grave|{ lcub lbrace|} rcub rbrace|\t Tab|\n NewLine|Œ OElig|œ oelig|Š Scaron|š scaron|Ÿ Yuml|ƒ fnof|ˆ circ|˜ tilde|\u2002 ensp|\u2003 emsp|\u2009 thinsp|– ndash|— mdash|‘ lsquo|’ rsquo|‚ sbquo|“ ldquo|” rdquo|„ bdquo|† dagger|‡ Dagger|• bull|… hellip|‰ permil|′ prime|″ Prime|‹ lsaquo|› rsaquo|‾ oline|⁄ frasl|€ euro|™ trade|⇐ lArr|⇑ uArr|⇒ rArr|⇓ dArr|⇔ hArr|∀ forall|∂ part|∃ exist|∅ empty|∇ nabla|∈ isin|∉ notin|∋ ni|∏ prod|∑ sum|− minus|∗ lowast|√ radic|∝ prop|∞ infin|∠ ang|∧ and|∨ or|∩ cap|∪ cup|∫ int|∴ there4|∼ sim|≅ cong|≈ asymp|≠ ne|≡ equiv|≤ le|≥ ge|⊂ sub|⊃ sup|⊄ nsub|⊆ sube|⊇ supe|⊕ oplus|⊗ otimes|⊥ perp|⋅ sdot|✓ check|✗ cross';

const characters = new Map<string, string>();
for (const [first, names] of RUNS)
  for (const [at, name] of names.split(' ').entries()) characters.set(name, String.fromCharCode(first + at));
for (const entry of OTHERS.split('|')) {
  const [character = '', ...names] = entry.split(' ');
  for (const name of names) characters.set(name, character);
}

/** All names, for the test that compares them with the parser's own table. */
export const entityNames = (): readonly string[] => [...characters.keys()];

/** Returns the character of a name; false for a name that is not known. The parser calls it by this name. */
export const decodeNamedCharacterReference = (name: string): string | false => characters.get(name) ?? false;
