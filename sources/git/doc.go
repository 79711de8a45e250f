// Package git reads Git repositories over http(s) and ssh, and writes notes to
// them.
//
// In go a URL, credentials and a ref; out come the commit that the ref points
// at and that commit's tree as an fs.FS. The remote is asked for its refs
// first, so that an unchanged repository costs one request and no transfer.
//
// Everything that a remote sends is bounded by Limits. The package starts no
// child process, reads no configuration of the machine it runs on, trusts no
// SSH host that known_hosts does not name, and sends credentials to no other
// host than the one they were given for.
package git
