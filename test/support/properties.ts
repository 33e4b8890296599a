// Property tests use a fixed seed, so a failure is caused by a change of the code. FC_SEED=… sets
// another seed.
import fc from 'fast-check';

const SEED = 20_261_121;

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env['FC_SEED'] ?? SEED) });
