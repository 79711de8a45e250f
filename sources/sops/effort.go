package sops

import "context"

// Files are written by others: what one may ask for is known before it is done.
const (
	// maxPattern is how long a regular expression of a rule may be, in bytes.
	maxPattern = 1000
	// maxWork is how many bytes may be looked at for the keys of a file: those on the way to each value, and once more for
	// each instruction of a rule.
	maxWork = 64 << 20
	// maxDepth is how deeply the values of a file may be nested.
	maxDepth = 100
	// maxListed is how many recipients of one kind a file may have, maxTried how many may be tried for all of its parts, and
	// maxWrapped how long that is which a file has for a recipient, in bytes. maxPackets is how many keys one may hold for
	// OpenPGP, where gpg writes one: each takes milliseconds.
	maxListed  = 100
	maxTried   = 1000
	maxWrapped = 8 << 10
	maxPackets = 4
	// maxKeys is how many private keys a Secret may have, as each is tried for each recipient.
	maxKeys = 100
)

var (
	errDeep  = invalid("its values are nested more than %d deep", maxDepth)
	errWork  = invalid("it would take too long to open, as its keys are long and many: split it")
	errTries = invalid("it has more recipients than are tried, %d in all its documents: split it", maxTried)
)

// opening is a file that is being opened.
type opening struct {
	keys  *Keys
	out   Plain
	work  int // how many bytes may still be looked at
	tries int // how many recipients may still be tried
}

// walk counts the way to a value. It fails as well when ctx has ended, which is asked here for each value.
func (o *opening) walk(ctx context.Context, l leaf) error {
	for _, key := range l.path {
		o.work -= len(key) + 1
	}
	if o.work < 0 {
		return errWork
	}
	return ctx.Err()
}
