// Lets other requests run between the steps of long work: the class of the store, for rooms of the API.
export { Pauses } from '../../sql/client/pauses.ts';
