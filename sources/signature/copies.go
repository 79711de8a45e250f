package signature

import (
	"bytes"
	"slices"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// merged returns one key of two copies of it: the one that its owner signed last, with all revocations of both. So an old copy
// beside a new one brings nothing back that was taken back since: a key or subkey that is revoked, one that was to end earlier, or one
// that was removed. A subkey of the other copy is added only if it is younger than that.
func merged(a, b *openpgp.Entity) *openpgp.Entity {
	out, other := a, b
	if follows(primary(b), primary(a)) || !follows(primary(a), primary(b)) && youngest(b).After(youngest(a)) {
		out, other = b, a
	}
	out.Revocations = append(out.Revocations, other.Revocations...)
	for name, identity := range out.Identities {
		if same := other.Identities[name]; same != nil {
			identity.Revocations = append(identity.Revocations, same.Revocations...)
			identity.SelfSignature = last(identity.SelfSignature, same.SelfSignature)
		}
	}
	self := primary(out)
	for _, sub := range other.Subkeys {
		at := slices.IndexFunc(out.Subkeys, func(s openpgp.Subkey) bool { return bytes.Equal(s.PublicKey.Fingerprint, sub.PublicKey.Fingerprint) })
		switch {
		case at >= 0:
			out.Subkeys[at].Revocations = append(out.Subkeys[at].Revocations, sub.Revocations...)
			out.Subkeys[at].Sig = last(out.Subkeys[at].Sig, sub.Sig)
		case self == nil || sub.Sig.CreationTime.After(self.CreationTime):
			out.Subkeys = append(out.Subkeys, sub)
		}
	}
	return out
}

// primary returns the last signature by which a key says for how long it is one; nil if there is none.
func primary(e *openpgp.Entity) *packet.Signature {
	out := e.SelfSignature
	for _, identity := range e.Identities {
		out = last(out, identity.SelfSignature)
	}
	return out
}

// youngest returns when a key has last signed for a subkey.
func youngest(e *openpgp.Entity) time.Time {
	var out time.Time
	for _, sub := range e.Subkeys {
		if sub.Sig.CreationTime.After(out) {
			out = sub.Sig.CreationTime
		}
	}
	return out
}

// last returns the one of two signatures about one key that counts. Each may be nil.
func last(a, b *packet.Signature) *packet.Signature {
	if follows(b, a) {
		return b
	}
	return a
}

// follows reports whether a signature counts in the place of another one about the same key: it is younger, or, if both are of one
// second, lets the key end earlier.
func follows(a, b *packet.Signature) bool {
	switch {
	case a == nil || b == nil:
		return b == nil && a != nil
	case !a.CreationTime.Equal(b.CreationTime):
		return a.CreationTime.After(b.CreationTime)
	}
	return sooner(a.KeyLifetimeSecs, b.KeyLifetimeSecs) || !sooner(b.KeyLifetimeSecs, a.KeyLifetimeSecs) && sooner(a.SigLifetimeSecs, b.SigLifetimeSecs)
}

// sooner reports whether a lifetime is shorter than another one. Nil, and zero, are for ever.
func sooner(a, b *uint32) bool {
	switch {
	case a == nil || *a == 0:
		return false
	case b == nil || *b == 0:
		return true
	}
	return *a < *b
}
