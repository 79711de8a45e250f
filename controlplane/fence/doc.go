// Package fence refuses writes of an epoch that is over, in the very transaction that
// would write: nothing can come between the look and the write, however long the
// process stands still.
//
// In go requests with an epoch in their header and the store's transactions; out come
// transactions that compare it, and errors for those that it does not fit. Requests
// without an epoch are none of its business.
package fence
