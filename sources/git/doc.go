// Package git reads Git repositories over http(s) and ssh, and writes notes to
// them.
//
// The input is a URL, credentials and a ref; the output is the commit that the
// ref points at and that commit's tree as an fs.FS. The remote is asked for the
// ref first, so that an unchanged repository costs one request and no transfer.
// Those who ask for the same may share the answer, and what was transferred makes the
// next transfer of the same repository smaller; either only for the same credentials.
// The messages of the protocol are in wire, what was transferred is in pack, and what
// is kept of it in objects.
//
// Everything that a remote sends is bounded by Limits. The package starts no
// child process, reads no configuration of the machine it runs on, trusts no SSH
// host that known_hosts does not name, and sends credentials only to the host
// that they were given for.
package git
