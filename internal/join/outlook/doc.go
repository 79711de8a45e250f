// Package outlook says what becomes of what the fleet runs in a cluster when that leaves.
//
// In go a cluster, the Works of it, and a look into the member where there is one; out come the
// names of what is removed and of what stays, as the loops that remove it will have it. It
// writes nothing.
package outlook
