// Package signed finds out what of a Git object was signed.
//
// In go the contents of commits and annotated tags, as they were transferred; out come what was signed and the signature, and
// what a tag points at. It verifies nothing.
package signed

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrMalformed means that an object can be read in different ways: who signed one reading must not vouch for another one.
var ErrMalformed = errors.New("malformed object")

// Object is a commit or an annotated tag as it was signed.
type Object struct {
	// Text is what was signed: the object without its signature.
	Text []byte
	// Signature is armored; empty for none.
	Signature string
	// Name is the name that a tag was signed with; empty for a commit, and for a tag that has none, or several.
	Name string
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Headers of commits with a signature: the second one is of repositories with SHA-256, and never part of what the first
// one signs.
var signatureHeaders = [][]byte{[]byte("gpgsig "), []byte("gpgsig-sha256 ")}

// Commit takes the signature out of a commit's header. Errors: ErrMalformed.
func Commit(raw []byte) (Object, error) {
	head, message, found := bytes.Cut(raw, []byte("\n\n"))
	if !found {
		head = bytes.TrimSuffix(raw, []byte("\n"))
	}
	if !ordered(head) {
		return Object{}, fmt.Errorf("%w: a commit whose headers are not in order", ErrMalformed)
	}
	var text, signature bytes.Buffer
	signatures, within := 0, notSigned
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		begins := !bytes.HasPrefix(line, []byte(" ")) // otherwise it goes on with the header before
		content := bytes.TrimPrefix(line, []byte(" "))
		if begins {
			within, content = headerOf(line)
		}
		switch {
		case within == notSigned:
			text.Write(line)
			text.WriteByte('\n')
		case within == 0:
			signature.Write(content)
			signature.WriteByte('\n')
		}
		if begins && within == 0 {
			signatures++
		}
	}
	if signatures > 1 || bytes.IndexByte(head, 0) >= 0 {
		return Object{}, fmt.Errorf("%w: a commit with %d signatures, or bytes that are no text", ErrMalformed, signatures)
	}
	if found {
		text.WriteByte('\n')
		text.Write(message)
	}
	return Object{Text: text.Bytes(), Signature: signature.String()}, nil
}

// leading are the headers with which each commit begins, in their order; there may be several parents, or none.
var leading = [][]byte{[]byte("tree "), []byte("parent "), []byte("author "), []byte("committer ")}

// ordered reports whether a commit begins with its tree, its parents, its author and its committer, and says none of them again.
func ordered(head []byte) bool {
	const parent = 1
	next := 0
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		at := slices.IndexFunc(leading, func(header []byte) bool { return bytes.HasPrefix(line, header) })
		switch {
		case at < 0 && next < len(leading): // something else is in between
			return false
		case at < 0, at == parent && next == parent:
		case at == next, at == parent+1 && next == parent:
			next = at + 1
		default:
			return false
		}
	}
	return next == len(leading)
}

// notSigned is for a header that is no signature.
const notSigned = -1

// headerOf returns which of the signature headers begins with a line, and the rest of the line.
func headerOf(line []byte) (which int, rest []byte) {
	for i, header := range signatureHeaders {
		if rest, ok := bytes.CutPrefix(line, header); ok {
			return i, rest
		}
	}
	return notSigned, line
}

// Tag takes the signature from the end of a tag, where the last one begins, as Git does.
func Tag(raw []byte) Object {
	at := len(raw)
	for _, begin := range []string{"-----BEGIN PGP SIGNATURE-----", "-----BEGIN SSH SIGNATURE-----", "-----BEGIN SIGNED MESSAGE-----"} {
		if i := bytes.LastIndex(raw, []byte("\n"+begin)); i >= 0 && (at == len(raw) || i+1 > at) {
			at = i + 1
		}
	}
	return Object{Text: raw[:at], Signature: string(raw[at:]), Name: nameOf(raw)}
}

// Target returns what a tag points at, by its first two headers, of which there must be one each. Errors: ErrMalformed.
func Target(raw []byte) (plumbing.Hash, plumbing.ObjectType, error) {
	head, _, _ := bytes.Cut(raw, []byte("\n\n"))
	lines := bytes.Split(head, []byte("\n"))
	refused := fmt.Errorf("%w: a tag without one object and its type", ErrMalformed)
	if len(lines) < 2 {
		return plumbing.ZeroHash, 0, refused
	}
	target, isObject := bytes.CutPrefix(lines[0], []byte("object "))
	kind, isType := bytes.CutPrefix(lines[1], []byte("type "))
	for _, line := range lines[2:] {
		if bytes.HasPrefix(line, []byte("object ")) || bytes.HasPrefix(line, []byte("type ")) {
			return plumbing.ZeroHash, 0, refused
		}
	}
	parsed, err := plumbing.ParseObjectType(string(kind))
	if !isObject || !isType || err != nil || !fullHash.Match(target) {
		return plumbing.ZeroHash, 0, refused
	}
	return plumbing.NewHash(string(target)), parsed, nil
}

// nameOf returns the name of a tag; empty if it has none, or several.
func nameOf(raw []byte) string {
	head, _, _ := bytes.Cut(raw, []byte("\n\n"))
	name, found := "", 0
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		if rest, ok := bytes.CutPrefix(line, []byte("tag ")); ok {
			name, found = string(rest), found+1
		}
	}
	if found != 1 {
		return ""
	}
	return name
}
