// Package fence refuses writes of a former leader's epoch, in the very transaction that
// would write: nothing can come between check and write, however long the
// process is paused.
//
// In go requests with an epoch in their header and the store's transactions; out come
// transactions that compare it, and errors where it is not the present one. Requests
// without an epoch pass unchanged.
package fence
