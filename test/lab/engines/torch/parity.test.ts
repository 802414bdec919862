import { testParity } from '../parity-suite.ts';
import { useTorch } from './open-torch-engine.ts';

const open = useTorch();

testParity('the torch engine', (folder) => open(folder));
