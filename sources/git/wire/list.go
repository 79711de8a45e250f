package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// EncodeList writes the request for the refs whose full names begin with one of the prefixes. It is for servers of version 2.
func (g *Greeting) EncodeList(w io.Writer, prefixes ...string) error {
	out := &lines{w: w}
	g.command(out, "ls-refs")
	out.text("peel")
	for _, prefix := range prefixes {
		out.text("ref-prefix " + prefix)
	}
	out.mark(flush)
	return out.err
}

// command begins a request of version 2.
func (g *Greeting) command(out *lines, name string) {
	out.text("command=" + name)
	if _, found := g.can["agent"]; found {
		out.text("agent=" + Agent)
	}
	if _, found := g.can["object-format"]; found {
		out.text("object-format=sha1")
	}
	out.mark(delim)
}

// Agent is what servers know this program by.
const Agent = "git/flotilla"

// ReadList reads the refs that were asked for, at most limit bytes. What was read before an error is returned with it.
// Errors: ErrTooLarge, ErrMalformed, a Refusal, or what reading returns.
func ReadList(r io.Reader, limit int64) (Refs, error) {
	in := Bound(r, limit, tooManyRefs(limit))
	refs, err := readList(bufio.NewReaderSize(in, maxLine))
	return refs, in.Cause(err)
}

func readList(in *bufio.Reader) (Refs, error) {
	refs := Refs{At: map[string]plumbing.Hash{}, Peeled: map[string]plumbing.Hash{}}
	for {
		kind, line, err := next(in)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return refs, notRefs(err)
		}
		if kind == flush {
			return refs, nil
		}
		if err := refs.add(chomp(line)); err != nil {
			return refs, err
		}
	}
}

// add reads one line: the object, the name, and attributes.
func (r Refs) add(line string) error {
	words := strings.Split(line, " ")
	if len(words) < 2 || words[1] == "" {
		return notRefs(nil)
	}
	if words[0] == "unborn" { // HEAD of an empty repository
		return nil
	}
	if !plumbing.IsHash(words[0]) || len(words[0]) != hashDigits {
		return notRefs(nil)
	}
	name := words[1]
	r.At[name] = plumbing.NewHash(words[0])
	for _, attribute := range words[2:] {
		peeled, found := strings.CutPrefix(attribute, "peeled:")
		if !found {
			continue
		}
		if !plumbing.IsHash(peeled) || len(peeled) != hashDigits {
			return fmt.Errorf("%w: the ref %q leads to no object", ErrMalformed, Excerpt(name))
		}
		r.Peeled[name] = plumbing.NewHash(peeled)
	}
	return nil
}

// hashDigits is the length of a SHA-1 in hex.
const hashDigits = 40
