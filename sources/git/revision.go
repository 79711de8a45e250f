package git

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
)

// Revision identifies a state of a source: a commit, and the ref by which it was
// found. Its text form is Flux's: "main@sha1:<40 hex>", or "sha1:<40 hex>"
// without a pointer.
type Revision struct {
	// Pointer is the branch, tag or full ref that led to the checksum; empty if
	// the checksum itself was given. It may contain '/' and '@'.
	Pointer string
	// Algorithm is the checksum's algorithm: sha1, sha256, sha384 or sha512.
	Algorithm string
	// Checksum is lower-case hex.
	Checksum string
}

// checksumLength is the number of hex digits of a checksum, by algorithm.
var checksumLength = map[string]int{"sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128}

// shortChecksum is how many digits of a checksum Short shows.
const shortChecksum = 8

// ParseRevision parses the text form. The last '@' separates pointer and
// checksum.
func ParseRevision(s string) (Revision, error) {
	var r Revision
	digest := s
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		r.Pointer, digest = s[:at], s[at+1:]
		if r.Pointer == "" {
			return Revision{}, fmt.Errorf("revision %q: nothing before the '@'", s)
		}
	}
	if i := strings.IndexFunc(r.Pointer, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }); i >= 0 {
		return Revision{}, fmt.Errorf("revision %q: white space in the pointer", s)
	}
	var found bool
	r.Algorithm, r.Checksum, found = strings.Cut(digest, ":")
	length, known := checksumLength[r.Algorithm]
	if !found || !known {
		return Revision{}, fmt.Errorf("revision %q: want [<pointer>@]<algorithm>:<checksum>", s)
	}
	if _, err := hex.DecodeString(r.Checksum); err != nil || len(r.Checksum) != length || strings.ToLower(r.Checksum) != r.Checksum {
		return Revision{}, fmt.Errorf("revision %q: a %s checksum has %d lower-case hex digits", s, r.Algorithm, length)
	}
	return r, nil
}

// String returns the text form; it is empty for the zero value.
func (r Revision) String() string { return r.text(len(r.Checksum)) }

// Short returns the text form with the checksum cut to 8 digits, for messages.
func (r Revision) Short() string { return r.text(min(shortChecksum, len(r.Checksum))) }

func (r Revision) text(digits int) string {
	if r.Checksum == "" {
		return ""
	}
	digest := r.Algorithm + ":" + r.Checksum[:digits]
	if r.Pointer == "" {
		return digest
	}
	return r.Pointer + "@" + digest
}
