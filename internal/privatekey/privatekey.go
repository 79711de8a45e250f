// Package privatekey bounds the private keys that users hand over.
//
// In go texts and keys; out comes an error for one that is larger than any that is in use: a signature by an RSA key of 32,768
// bits takes a minute, and nothing stops it. The package reads no key, and an error shows nothing of one.
package privatekey

import "fmt"

const (
	// MostBits is how many bits an RSA key may have: a signature by one takes a second at most.
	MostBits = 8192
	// mostBytes is how long the PEM text of one may be, which has such a key once more, and a certificate's or a comment.
	mostBytes = 8 << 10
)

// CheckText returns an error for a PEM text that is too long to be read.
func CheckText(text []byte) error {
	if len(text) > mostBytes {
		return fmt.Errorf("a private key of more than %d bytes is not read: use one of at most %d bits", mostBytes, MostBits)
	}
	return nil
}

// CheckBits returns an error for an RSA key that is too large to be used.
func CheckBits(bits int) error {
	if bits > MostBits {
		return fmt.Errorf("an RSA key of more than %d bits is not used", MostBits)
	}
	return nil
}
