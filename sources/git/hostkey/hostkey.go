// Package hostkey decides whether an SSH server is the one that it is to be.
//
// In go the text of a known_hosts file, and the key that a server shows; out comes why it is not trusted, if it is not. Nobody
// is trusted on first use, and no key with SHA-1 or of too few bits. The package connects to nothing.
package hostkey

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"net"

	"github.com/fluxcd/pkg/ssh/knownhosts"
	"golang.org/x/crypto/ssh"
	cryptoknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

var (
	// ErrNotTrusted means that a server could not be trusted.
	ErrNotTrusted = errors.New("SSH host key not trusted")
	// ErrUnknown is an ErrNotTrusted: known_hosts does not name the host.
	ErrUnknown = fmt.Errorf("%w: unknown host", ErrNotTrusted)
	// ErrChanged is an ErrNotTrusted: known_hosts has another key for the host.
	ErrChanged = fmt.Errorf("%w: key changed", ErrNotTrusted)
)

// minRSABits is the smallest RSA host key that is trusted.
const minRSABits = 2048

// hostKeyAlgorithms are the signature algorithms accepted from a server: none
// with SHA-1.
var hostKeyAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// Known looks up which keys a host may show.
type Known struct{ lookup ssh.HostKeyCallback }

// Parse reads the text of a known_hosts file. Errors contain nothing of it.
func Parse(text []byte) (Known, error) {
	lookup, _, err := knownhosts.New(text)
	if err != nil {
		return Known{}, errors.New("key known_hosts does not parse: put the output of ssh-keyscan there")
	}
	return Known{lookup: lookup}, nil
}

// Algorithms returns the signature algorithms to offer: those of the key types
// that are known for the host, so that a server with several keys shows a known
// one.
func (k Known) Algorithms(address string, remote net.Addr) []string {
	var unknown *cryptoknownhosts.KeyError
	if !errors.As(k.lookup(address, remote, noKey{}), &unknown) || len(unknown.Want) == 0 {
		return hostKeyAlgorithms
	}
	kinds := map[string]bool{}
	for _, known := range unknown.Want {
		kinds[known.Key.Type()] = true
	}
	var out []string
	for _, algorithm := range hostKeyAlgorithms {
		isRSA := algorithm == ssh.KeyAlgoRSASHA512 || algorithm == ssh.KeyAlgoRSASHA256
		if kinds[algorithm] || (isRSA && kinds[ssh.KeyAlgoRSA]) {
			out = append(out, algorithm)
		}
	}
	if len(out) == 0 {
		return hostKeyAlgorithms
	}
	return out
}

// Check returns why a host is not trusted with a key, or nil. Errors: ErrUnknown, ErrChanged, ErrNotTrusted.
func (k Known) Check(host string, addr net.Addr, key ssh.PublicKey) error {
	if bits := rsaBits(key); bits > 0 && bits < minRSABits {
		return fmt.Errorf("%w: %s shows an RSA key of %d bits, at least %d are needed", ErrNotTrusted, host, bits, minRSABits)
	}
	err := k.lookup(host, addr, key)
	var fault *cryptoknownhosts.KeyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault) && len(fault.Want) > 0:
		return fmt.Errorf("%w: %s now shows %s; if that is expected, renew known_hosts in the Secret", ErrChanged, host, ssh.FingerprintSHA256(key))
	case errors.As(err, &fault):
		return fmt.Errorf("%w: %s shows %s, which known_hosts in the Secret does not have; add it once you have verified it", ErrUnknown, host, ssh.FingerprintSHA256(key))
	default:
		return fmt.Errorf("%w: %w", ErrNotTrusted, err)
	}
}

func rsaBits(key ssh.PublicKey) int {
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok {
			return public.N.BitLen()
		}
	}
	return 0
}

// noKey is a key that no host has; looking it up returns the keys that are known
// for a host.
type noKey struct{}

// Type returns a type that no key has.
func (noKey) Type() string { return "none" }

// Marshal returns bytes that no key has.
func (noKey) Marshal() []byte { return []byte("none") }

// Verify returns an error for every signature.
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }
