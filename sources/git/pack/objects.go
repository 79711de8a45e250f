package pack

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// Tree returns the entries of one tree object. It returns an error for duplicate
// names, and for names that are paths or .git.
func (p *Pack) Tree(hash plumbing.Hash) ([]object.TreeEntry, error) {
	encoded, err := p.Object(hash)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s is missing from the transfer", wire.ErrMalformed, hash)
	}
	var decoded object.Tree
	if err := decoded.Decode(encoded); err != nil {
		return nil, fmt.Errorf("%w: tree %s: %s", wire.ErrMalformed, hash, wire.Excerpt(err.Error()))
	}
	names := make(map[string]bool, len(decoded.Entries))
	for _, e := range decoded.Entries {
		if names[e.Name] {
			return nil, fmt.Errorf("%w: tree %s holds the name %q twice", wire.ErrMalformed, hash, wire.Excerpt(e.Name))
		}
		names[e.Name] = true
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.EqualFold(e.Name, ".git") || strings.ContainsAny(e.Name, "/\\\x00") {
			return nil, fmt.Errorf("%w: tree %s holds the name %q", wire.ErrMalformed, hash, wire.Excerpt(e.Name))
		}
	}
	return decoded.Entries, nil
}

// Raw returns an object's content as it was transferred: what was signed is that, not what a decoder makes of it.
func (p *Pack) Raw(hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	encoded, err := p.Object(hash)
	if err != nil || encoded.Type() != kind {
		return nil, fmt.Errorf("%w: %s %s is missing from the transfer", wire.ErrMalformed, kind, hash)
	}
	return content(encoded)
}

// Blob returns the content of a file.
func (p *Pack) Blob(hash plumbing.Hash) ([]byte, error) {
	encoded, err := p.Object(hash)
	if err != nil {
		return nil, fmt.Errorf("%w: object %s is missing from the transfer", wire.ErrMalformed, hash)
	}
	return content(encoded)
}

// content unpacks an object.
func content(encoded plumbing.EncodedObject) ([]byte, error) {
	r, err := encoded.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	buf := bytes.NewBuffer(make([]byte, 0, encoded.Size()))
	if _, err := io.Copy(buf, r); err != nil {
		return nil, fmt.Errorf("%w: object %s: %s", wire.ErrMalformed, encoded.Hash(), wire.Excerpt(err.Error()))
	}
	return buf.Bytes(), nil
}
