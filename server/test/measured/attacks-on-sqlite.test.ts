import { testOverloadAttacks } from '../security/overload-attacks.ts';

testOverloadAttacks('sqlite');
