/** Names a tool as a program can call it: by its own name, as far as the language allows it. */

const BASH_WORDS =
  'if then else elif fi case esac for select while until do done in function time coproc echo test read cd exit return set unset export local declare source eval exec kill wait trap printf';
const PYTHON_WORDS =
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield';

export function toolName(tool: string, language: 'bash' | 'python'): string {
  const plain = tool.replace(/[-\s.]/g, '_').replace(/[^A-Za-z0-9_]/g, '');
  const name = /^[0-9]/.test(plain) || plain === '' ? `_${plain}` : plain;
  const reserved = (language === 'bash' ? BASH_WORDS : PYTHON_WORDS).split(' ');
  return reserved.includes(name) ? `${name}_tool` : name;
}
