package signature

import (
	"slices"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// lasts lets a key live for a time from its making on, by a signature of its own of now that replaces the one before; zero is for ever.
func lasts(t testing.TB, e *openpgp.Entity, life time.Duration, now time.Time) {
	t.Helper()
	for name, identity := range e.Identities {
		sig := *identity.SelfSignature
		secs := uint32(life.Seconds())
		if sig.CreationTime, sig.KeyLifetimeSecs = now, &secs; secs == 0 {
			sig.KeyLifetimeSecs = nil
		}
		if err := sig.SignUserId(name, e.PrimaryKey, e.PrivateKey, at(now)); err != nil {
			t.Fatal(err)
		}
		identity.SelfSignature, identity.Signatures = &sig, []*packet.Signature{&sig}
	}
}

// TestCopiesOfAKey: an old copy of a key beside a new one does not bring back what its owner took back, in whatever order they
// are.
func TestCopiesOfAKey(t *testing.T) {
	const month = 30 * 24 * time.Hour
	day := func(n int) time.Time { return made.AddDate(0, 0, n) }
	revoke := func(t *testing.T, e *openpgp.Entity) {
		if err := e.RevokeKey(packet.KeyCompromised, "stolen", at(day(60))); err != nil {
			t.Fatal(err)
		}
	}
	another := func(t *testing.T, e *openpgp.Entity, on time.Time) {
		config := at(on)
		config.Algorithm = packet.PubKeyAlgoEdDSA
		if err := e.AddSigningSubkey(config); err != nil {
			t.Fatal(err)
		}
	}
	takeBack := func(t *testing.T, e *openpgp.Entity) {
		if err := e.RevokeSubkey(&e.Subkeys[len(e.Subkeys)-1], packet.KeyCompromised, "stolen", at(day(30))); err != nil {
			t.Fatal(err)
		}
	}
	drop := func(e *openpgp.Entity) { e.Subkeys = slices.Delete(e.Subkeys, len(e.Subkeys)-1, len(e.Subkeys)) }
	for name, tc := range map[string]struct {
		life  time.Duration
		first func(t *testing.T, e *openpgp.Entity) // before the old copy is made
		then  func(t *testing.T, e *openpgp.Entity) // before the new one is
		subs  bool                                  // it is about the newest subkey of the old copy, or else of the new one
		want  bool
	}{
		"it is revoked": {then: revoke},
		"it is revoked, and the old copy says more of subkeys": {
			first: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(10)); takeBack(t, e) },
			then:  func(t *testing.T, e *openpgp.Entity) { drop(e); revoke(t, e) },
		},
		"it is prolonged":      {life: month, then: func(t *testing.T, e *openpgp.Entity) { lasts(t, e, 0, day(20)) }, want: true},
		"it is to end earlier": {then: func(t *testing.T, e *openpgp.Entity) { lasts(t, e, month, day(20)) }},
		"it is to end earlier, and the old copy has a subkey that is revoked": {
			first: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(25)); takeBack(t, e) },
			then:  func(t *testing.T, e *openpgp.Entity) { drop(e); lasts(t, e, month, day(26)) },
		},
		"it is to end earlier, and the old copy has a newer subkey": {
			first: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(28)) },
			then:  func(t *testing.T, e *openpgp.Entity) { drop(e); lasts(t, e, month, day(26)) },
		},
		"it is to end earlier, as it was said in the same second": {life: 24 * month, then: func(t *testing.T, e *openpgp.Entity) { lasts(t, e, month, made) }},
		"its identity is revoked": {then: func(t *testing.T, e *openpgp.Entity) {
			for name, identity := range e.Identities {
				sig := &packet.Signature{Version: 4, SigType: packet.SigTypeCertificationRevocation, PubKeyAlgo: e.PrimaryKey.PubKeyAlgo, Hash: identity.SelfSignature.Hash,
					CreationTime: day(50), IssuerKeyId: &e.PrimaryKey.KeyId}
				if err := sig.SignUserId(name, e.PrimaryKey, e.PrivateKey, at(day(50))); err != nil {
					t.Fatal(err)
				}
				identity.Signatures = append(identity.Signatures, sig)
			}
		}},
		"a subkey is revoked": {
			first: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(10)) }, then: takeBack, subs: true,
		},
		"a subkey is revoked, and the key was prolonged before": {
			first: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(10)) },
			then:  func(t *testing.T, e *openpgp.Entity) { takeBack(t, e); lasts(t, e, 0, day(40)) }, subs: true,
		},
		"a subkey is new": {then: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(10)) }, subs: true, want: true},
		"a subkey was there before the key was made anew": {
			first: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(10)) },
			then:  func(t *testing.T, e *openpgp.Entity) { drop(e); lasts(t, e, 0, day(40)) }, subs: true,
		},
		"a subkey was made where the other copy is not known": {
			first: func(t *testing.T, e *openpgp.Entity) { another(t, e, day(50)) },
			then:  func(t *testing.T, e *openpgp.Entity) { drop(e); lasts(t, e, 0, day(40)) }, subs: true, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := entity(t, tc.life)
			if tc.first != nil {
				tc.first(t, e)
			}
			old, key := ring(t, e), e.PrimaryKey
			last := e.Subkeys[len(e.Subkeys)-1].PublicKey
			tc.then(t, e)
			if tc.subs {
				if key = last; len(e.Subkeys) > 1 {
					key = e.Subkeys[len(e.Subkeys)-1].PublicKey
				}
			}
			for order, secret := range map[string]map[string][]byte{
				"the old one first": {"a.asc": old, "b.asc": ring(t, e)},
				"the old one last":  {"a.asc": ring(t, e), "b.asc": old},
				"in one file":       {"a.asc": append(slices.Clone(old), ring(t, e)...)},
				"thrice":            {"a.asc": old, "b.asc": ring(t, e), "c.asc": old},
			} {
				keys, err := Parse(secret)
				if err != nil {
					t.Fatal(err)
				}
				if got := keys.Has(fingerprintOf(key), now); got != tc.want {
					t.Errorf("%s: it counts: %t, want %t", order, got, tc.want)
				}
				if len(keys.pgp) != 1 {
					t.Errorf("%s: %d keys", order, len(keys.pgp))
				}
			}
		})
	}
}
